// Package check runs checks and says of each, in a line, what was checked and how it went.
package check

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Check is something that a server must do for its clients.
type Check struct {
	Name string
	// Run does the check. It may report parts; what it returns is reported as the whole.
	Run func(context.Context, *Run) error
}

// Run is one run of a check.
type Run struct {
	Name string
	// HistoryMin is how long the server keeps every change at least, HistoryMax how long it may keep
	// them, however many there are.
	HistoryMin, HistoryMax time.Duration
	// During is how long a check writes that has no other end.
	During  time.Duration
	seed    uint64
	config  *rest.Config
	witness *rest.Config
	printer *Printer
}

// Config is a configuration for a client of its own, without a limit on its requests.
func (r *Run) Config() *rest.Config {
	return r.own(r.config)
}

// Replica says whether the server is the replica of another one: it may leave out states that were
// replaced before it told them, and nothing else.
func (r *Run) Replica() bool {
	return r.witness != nil
}

// Witness is a configuration for a client that sees everything: of the server which the judged one
// is a replica of, or of the judged one itself.
func (r *Run) Witness() *rest.Config {
	if r.witness == nil {
		return r.Config()
	}
	return r.own(r.witness)
}

func (r *Run) own(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = "clients/" + r.Name
	config.QPS = -1
	return config
}

// Rand gives numbers that are the same in each run of the same seed.
func (r *Run) Rand(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(r.seed, stream))
}

// Report says how a part of the check went.
func (r *Run) Report(part string, err error, format string, arguments ...any) {
	r.printer.line(r.Name+"/"+part, err, fmt.Sprintf(format, arguments...))
}

// Skip says that a part of the check could not be judged, and why.
func (r *Run) Skip(part, format string, arguments ...any) {
	r.printer.skip(r.Name+"/"+part, fmt.Sprintf(format, arguments...))
}

// Printer writes results, one line each.
type Printer struct {
	Out    io.Writer
	mutex  sync.Mutex
	counts Counts
}

// Counts says how many lines were good, how many were not, and how many things were not judged.
type Counts struct {
	OK, Failed, Skipped int
}

func (c Counts) String() string {
	return fmt.Sprintf("%d ok, %d failed, %d skipped", c.OK, c.Failed, c.Skipped)
}

func (p *Printer) line(name string, err error, what string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err != nil {
		p.counts.Failed++
		fmt.Fprintf(p.Out, "FAIL %s: %s: %v\n", name, what, err)
		return
	}
	p.counts.OK++
	fmt.Fprintf(p.Out, "ok   %s: %s\n", name, what)
}

func (p *Printer) skip(name, why string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.counts.Skipped++
	fmt.Fprintf(p.Out, "skip %s: %s\n", name, why)
}

// Counts counts the lines so far.
func (p *Printer) Counts() Counts {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.counts
}

// Suite says which checks are run, and how.
type Suite struct {
	Checks                 []Check
	Pick                   *regexp.Regexp
	Parallel               int
	Patience               time.Duration
	HistoryMin, HistoryMax time.Duration
	Seed                   uint64
	Config                 *rest.Config
	// Witness is nil where the judged server is nobody's replica.
	Witness *rest.Config
	During  time.Duration
	Printer *Printer
}

// Run runs the checks that were picked, a few at a time, in their order.
func (s *Suite) Run(ctx context.Context) {
	places := make(chan struct{}, s.Parallel)
	var running sync.WaitGroup
	for _, check := range s.Checks {
		if !s.Pick.MatchString(check.Name) {
			continue
		}
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			s.one(ctx, check)
		})
	}
	running.Wait()
}

func (s *Suite) one(ctx context.Context, check Check) {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	run := &Run{
		Name:       check.Name,
		HistoryMin: s.HistoryMin,
		HistoryMax: s.HistoryMax,
		seed:       s.Seed,
		During:     s.During,
		config:     s.Config,
		witness:    s.Witness,
		printer:    s.Printer,
	}
	began := time.Now()
	err := check.Run(ctx, run)
	s.Printer.line(check.Name, err, fmt.Sprintf("done in %.1f s", time.Since(began).Seconds()))
}
