package history

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Account is what a client of a replica was told, and what it had before.
type Account struct {
	// Had is what it had before the first notice.
	Had States
	// Notices are what it was told, in order.
	Notices []Notice
	// Relists is how often it took a whole state after the first.
	Relists int
}

// Watched is the account of a watch: it has no lists.
func Watched(had States, seen []Event) Account {
	account := Account{Had: had}
	for _, event := range seen {
		account.Notices = append(account.Notices, Notice{Event: event})
	}
	return account
}

// Followed checks what a client of a replica was told against all events that the replica's source
// had to say. A replica may leave out a state that another one replaced before it was told, and so
// an object that came and went. It may do nothing else: every state that it tells is one that was
// written, no object goes back, what is told to go was there and went, and nothing goes twice. In
// the end the client has what the source has.
func Followed(want []Event, account Account, until Until) (Told, error) {
	source := sourceOf(want)
	r := replica{source: source, has: States{}, relisted: account.Relists > 0}
	for name, state := range account.Had {
		r.has[name] = state
	}
	for _, notice := range account.Notices {
		if err := r.take(notice); err != nil {
			return Told{}, fmt.Errorf("after %d relists: %w", account.Relists, err)
		}
		switch {
		case notice.Initial:
			r.told.Initial++
		case notice.Tombstone:
			r.told.Relisted++
			r.told.Tombstones++
		default:
			r.told.Live++
		}
	}
	if until == Stopped {
		return r.told, nil
	}
	if err := r.has.Same(At(want)); err != nil {
		return Told{}, fmt.Errorf("in the end, %w", err)
	}
	return r.told, nil
}

// source is what was written.
type source struct {
	states map[State]bool
	// left are the versions at which an object went, or left the selection.
	left map[types.UID][]Version
}

func sourceOf(events []Event) source {
	source := source{states: map[State]bool{}, left: map[types.UID][]Version{}}
	for _, event := range events {
		if event.Type == watch.Deleted {
			source.left[event.UID] = append(source.left[event.UID], event.Version)
		} else {
			source.states[event.State] = true
		}
	}
	return source
}

// wentAfter says whether an object went after a version, and not after another one.
func (s source) wentAfter(uid types.UID, held Version, until *Version) bool {
	for _, at := range s.left[uid] {
		if at.Newer(held) && (until == nil || !at.Newer(*until)) {
			return true
		}
	}
	return false
}

// replica is how far an account was understood.
type replica struct {
	source   source
	has      States
	relisted bool
	told     Told
}

func (r *replica) take(notice Notice) error {
	held, there := r.has[notice.Name]
	var fault error
	if notice.Type == watch.Deleted {
		fault = r.goes(notice, held, there)
	} else {
		fault = r.comes(notice, held, there)
	}
	if fault == nil {
		r.has.Apply(notice.Event)
	}
	return fault
}

// goes checks a deletion. One that only a list showed has the state that was there.
func (r *replica) goes(notice Notice, held State, there bool) error {
	until := &notice.Version
	if notice.Tombstone {
		until = nil
	}
	switch {
	case !there:
		return fmt.Errorf("deleted, but it is not there: %v", notice)
	case notice.Tombstone && !r.relisted:
		return fmt.Errorf("noticed by a list, but there was none: %v", notice)
	case notice.UID != held.UID:
		return fmt.Errorf("the deletion of another object (%s is there): %v", held.UID, notice)
	case !r.source.wentAfter(held.UID, held.Version, until):
		return fmt.Errorf("deleted, but nobody deleted it after %s: %v", held.Version, notice)
	}
	return nil
}

// comes checks a state. A list may show again what is there, or another object of the same name.
func (r *replica) comes(notice Notice, held State, there bool) error {
	repeated := there && notice.Version == held.Version
	switch {
	case !r.source.states[notice.State]:
		return fmt.Errorf("nobody ever wrote this: %v", notice)
	case notice.Type == watch.Added && there:
		return fmt.Errorf("added, but it is there at %s: %v", held.Version, notice)
	case notice.Type == watch.Modified && !there:
		return fmt.Errorf("an update of what is not there: %v", notice)
	case notice.Old != (State{}) && notice.Old != held:
		return fmt.Errorf("an update of what is not there (%s is): %v", held.Version, notice)
	case there && held.Version.Newer(notice.Version):
		return fmt.Errorf("back from %s: %v", held.Version, notice)
	case repeated && !r.relisted:
		return fmt.Errorf("told again: %v", notice)
	case there && notice.UID != held.UID && !r.relisted:
		return fmt.Errorf("another object without a deletion of the first: %v", notice)
	}
	return nil
}
