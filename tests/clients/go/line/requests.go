package line

import (
	"bytes"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request is a kind of request that the checks count.
type Request int

const (
	// Other is everything else.
	Other Request = iota
	// List is the first page of a list.
	List
	// Watch begins after a version.
	Watch
	// Stream is a watch that begins with what is there: a streaming list.
	Stream
)

// Count says how many requests of a kind were made.
func (l *Line) Count(kind Request) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.requests[kind]
}

// Expired says how many watches were refused because their version was too old.
func (l *Line) Expired() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.expired
}

// note wraps a transport so that its requests are counted.
func (l *Line) note(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		kind := kindOf(request)
		l.mutex.Lock()
		if l.requests == nil {
			l.requests = map[Request]int{}
		}
		l.requests[kind]++
		l.mutex.Unlock()
		response, err := next.RoundTrip(request)
		if err == nil && (kind == Watch || kind == Stream) {
			response.Body = &beginning{ReadCloser: response.Body, line: l}
		}
		return response, err
	})
}

func kindOf(request *http.Request) Request {
	query := request.URL.Query()
	watches := query.Get("watch") == "true" || query.Get("watch") == "1"
	switch {
	case request.Method != http.MethodGet:
		return Other
	case watches && query.Get("sendInitialEvents") == "true":
		return Stream
	case watches:
		return Watch
	case query.Get("continue") == "":
		return List
	}
	return Other
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}

// beginning reads along the first bytes of a watch: a refusal is its first event. The reason is the
// same text in every encoding.
type beginning struct {
	io.ReadCloser
	line  *Line
	first []byte
}

const beginningMax = 4096

func (b *beginning) Read(into []byte) (int, error) {
	count, err := b.ReadCloser.Read(into)
	if room := beginningMax - len(b.first); room > 0 {
		before := b.refused()
		b.first = append(b.first, into[:min(count, room)]...)
		if !before && b.refused() {
			b.line.mutex.Lock()
			b.line.expired++
			b.line.mutex.Unlock()
		}
	}
	return count, err
}

func (b *beginning) refused() bool {
	return bytes.Contains(b.first, []byte("ERROR")) &&
		bytes.Contains(b.first, []byte(metav1.StatusReasonExpired))
}
