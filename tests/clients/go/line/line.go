// Package line is the wire between one client and the server. It can be cut, and it notes what was
// asked over it.
package line

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Line is one client's way to the server. The zero value is ready.
type Line struct {
	mutex sync.Mutex
	open  map[*connection]struct{}
	// down is closed when the line is up again; nil while it is.
	down     chan struct{}
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

// Down cuts the line and lets nothing through until Up: who dials meanwhile waits, as behind a
// network that has lost its way.
func (l *Line) Down() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.down == nil {
		l.down = make(chan struct{})
	}
	l.cut()
}

// Up lets connections through again.
func (l *Line) Up() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.down != nil {
		close(l.down)
		l.down = nil
	}
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
	for {
		l.mutex.Lock()
		down := l.down
		l.mutex.Unlock()
		if down == nil {
			break
		}
		select {
		case <-down:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	plain, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return l.keep(plain), nil
}

// keep notes a connection so that it can be cut. One that came up while the line went down is cut.
func (l *Line) keep(plain net.Conn) *connection {
	kept := &connection{Conn: plain, line: l}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.open == nil {
		l.open = map[*connection]struct{}{}
	}
	l.open[kept] = struct{}{}
	if l.down != nil {
		l.cut()
	}
	return kept
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
