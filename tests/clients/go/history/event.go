package history

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is what a watch says of one write. Events can be compared with ==.
type Event struct {
	Type watch.EventType
	State
}

// EventOf reads an event of a watch.
func EventOf(event watch.Event) (Event, error) {
	state, err := Read(event.Object)
	if err != nil {
		return Event{}, fmt.Errorf("event %s: %w", event.Type, err)
	}
	return Event{event.Type, state}, nil
}

func (e Event) String() string {
	return fmt.Sprintf("%s %s at %s (%s %s)", e.Type, e.Name, e.Version, e.Meta, e.Body)
}

// Parts says which part of the objects a client asks for.
type Parts int

const (
	// Whole objects.
	Whole Parts = iota
	// MetadataOnly is what a metadata client gets.
	MetadataOnly
)

// Selection is what a client asks for.
type Selection struct {
	Labels string
	Fields string
	Parts  Parts
}

// Events are what a watch with this selection says of the history: entering is ADDED, leaving is
// DELETED, with the object as it was before and the version of the write.
func (h *History) Events(selection Selection) ([]Event, error) {
	byLabels, err := labels.Parse(selection.Labels)
	if err != nil {
		return nil, fmt.Errorf("label selector: %w", err)
	}
	byFields, err := fields.ParseSelector(selection.Fields)
	if err != nil {
		return nil, fmt.Errorf("field selector: %w", err)
	}
	selects := func(put *put) bool {
		return put != nil &&
			byLabels.Matches(put.attributes.Labels) && byFields.Matches(put.attributes.Fields)
	}
	var events []Event
	for _, change := range h.changes {
		var event Event
		switch before, after := selects(change.Before), selects(change.After); {
		case before && after:
			event = Event{watch.Modified, change.After.state}
		case after:
			event = Event{watch.Added, change.After.state}
		case before:
			event = Event{watch.Deleted, change.Before.state}
			event.Version = change.Version
		default:
			continue
		}
		if selection.Parts == MetadataOnly {
			event.Body = ""
		}
		events = append(events, event)
	}
	return events, nil
}

// Exactly checks that a watch said what it had to, all of it, once and in order.
func Exactly(want, seen []Event) error {
	for at, event := range seen {
		switch {
		case at >= len(want):
			return fmt.Errorf("%d events instead of %d; the first one too many: %v",
				len(seen), len(want), event)
		case event != want[at]:
			return fmt.Errorf("event %d of %d is %v; it should be %v", at, len(want), event, want[at])
		}
	}
	if len(seen) < len(want) {
		return fmt.Errorf("%d events instead of %d; the first one missing: %v",
			len(seen), len(want), want[len(seen)])
	}
	return nil
}

// States are objects by name.
type States map[string]State

// Apply takes over what an event says.
func (s States) Apply(event Event) {
	if event.Type == watch.Deleted {
		delete(s, event.Name)
		return
	}
	s[event.Name] = event.State
}

// At is what a client has that was told these events.
func At(events []Event) States {
	states := States{}
	for _, event := range events {
		states.Apply(event)
	}
	return states
}

// Same compares states, and says what differs.
func (s States) Same(want States) error {
	for name, state := range want {
		switch got, there := s[name]; {
		case !there:
			return fmt.Errorf("%s at %s is missing", name, state.Version)
		case got != state:
			return fmt.Errorf("%s is %v; it should be %v", name, got, state)
		}
	}
	for name, state := range s {
		if _, there := want[name]; !there {
			return fmt.Errorf("%s at %s should not be there", name, state.Version)
		}
	}
	return nil
}
