// Package line is the wire between one client and the server. It can be cut, and it notes what was
// asked over it.
package line

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// Line is one client's way to the server. The zero value is ready.
type Line struct {
	mutex    sync.Mutex
	open     map[*connection]struct{}
	down     bool
	cuts     int
	requests map[Request]int
	expired  int
}

// Config is a configuration for a client that uses this line and nothing else.
func (l *Line) Config(base *rest.Config) *rest.Config {
	config := rest.CopyConfig(base)
	config.Dial = l.dial
	config.Wrap(l.note)
	return config
}

// Cut ends every connection, as if the server had closed it.
func (l *Line) Cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cut()
}

// Down cuts the line and lets nothing through until Up.
func (l *Line) Down() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.down = true
	l.cut()
}

// Up lets new connections through again.
func (l *Line) Up() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.down = false
}

// Cuts says how many connections were cut.
func (l *Line) Cuts() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.cuts
}

func (l *Line) cut() {
	for connection := range l.open {
		connection.cut.Store(true)
		// It is closed to end its reader; what Close says of it does not matter.
		_ = connection.Conn.Close()
		l.cuts++
	}
	clear(l.open)
}

func (l *Line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	plain, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.down {
		_ = plain.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	kept := &connection{Conn: plain, line: l}
	if l.open == nil {
		l.open = map[*connection]struct{}{}
	}
	l.open[kept] = struct{}{}
	return kept, nil
}

type connection struct {
	net.Conn
	line *Line
	cut  atomic.Bool
}

// Read gives what a client reads whose server has gone.
func (c *connection) Read(into []byte) (int, error) {
	count, err := c.Conn.Read(into)
	if err != nil && c.cut.Load() {
		return count, io.EOF
	}
	return count, err
}

func (c *connection) Close() error {
	c.line.mutex.Lock()
	delete(c.line.open, c)
	c.line.mutex.Unlock()
	return c.Conn.Close()
}
