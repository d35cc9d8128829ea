package history

import (
	"fmt"

	"k8s.io/apimachinery/pkg/watch"
)

// Notice is a call of an informer's handler.
type Notice struct {
	// Event is what was called: add, update or delete, and the object.
	Event
	// Old is what an update was told to replace.
	Old State
	// Initial is set where an add was said to be of the first list.
	Initial bool
	// Tombstone is set where a deletion was noticed by a list, not told by a watch.
	Tombstone bool
}

func (n Notice) String() string {
	switch {
	case n.Initial:
		return n.Event.String() + ", initial"
	case n.Tombstone:
		return n.Event.String() + ", noticed by a list"
	case n.Type == watch.Modified:
		return fmt.Sprintf("%v, replacing %s", n.Event, n.Old.Version)
	}
	return n.Event.String()
}

// Told says what an informer was shown to have done.
type Told struct {
	// Initial objects came with the first list, Live events from watches.
	Initial, Live int
	// Relisted notices came from lists after the first; of them Tombstones are deletions.
	Relisted, Tombstones int
}

// Until is how long an informer ran.
type Until int

const (
	// TheEnd of the history: nothing may be missing.
	TheEnd Until = iota
	// Stopped somewhere before: what would have come next is not missing.
	Stopped
)

// Faithful checks what an informer told its handler against all events that a watch with its
// selection had to say. An informer begins with the state at some version, and then tells every
// event after it in order. A relist may leave out what happened while it was away; then it replaces
// all it has by the state at a later version, and goes on from there. One such gap is understood,
// since nobody here is away more often, and none where there was no relist.
func Faithful(want []Event, notices []Notice, relists int, until Until) (Told, error) {
	place := map[Event]int{}
	for at, event := range want {
		place[event] = at
	}
	if until == Stopped && len(notices) > 0 {
		if at, known := place[notices[len(notices)-1].Event]; known {
			want = want[:at+1]
		}
	}
	reader := reading{want: want, place: place, has: States{}, until: until}
	rest, err := reader.begin(notices)
	if err != nil {
		return Told{}, err
	}
	rest, mismatch := reader.follow(rest)
	if relists > 0 && (mismatch != nil || until == TheEnd && reader.at < len(want)) {
		rest, err = reader.relist(rest)
		if err != nil {
			return Told{}, err
		}
		_, mismatch = reader.follow(rest)
	}
	if mismatch != nil {
		return Told{}, fmt.Errorf("after %d relists: %w", relists, mismatch)
	}
	if until == TheEnd && reader.at < len(want) {
		return Told{}, fmt.Errorf("%d of %d events were never told, the first: %v",
			len(want)-reader.at, len(want), want[reader.at])
	}
	return reader.told, nil
}

// reading is how far an informer's notices were understood.
type reading struct {
	want  []Event
	place map[Event]int
	// at is the place of the next event, has what was told up to it.
	at    int
	has   States
	told  Told
	until Until
}

// begin takes the initial notices, finds the version that they show, and gives the rest.
func (r *reading) begin(notices []Notice) ([]Notice, error) {
	count := 0
	for _, notice := range notices {
		if !notice.Initial {
			break
		}
		if err := r.take(notice); err != nil {
			return nil, err
		}
		count++
	}
	r.told.Initial = count
	rest := notices[count:]
	switch {
	case len(rest) == 0 && r.until == TheEnd:
		r.at = len(r.want)
	case len(rest) == 0 || fromList(rest[0]):
		r.at = r.oldest()
	default:
		at, known := r.place[rest[0].Event]
		if !known {
			return nil, fmt.Errorf("first told after the list, and never written: %v", rest[0])
		}
		r.at = at
	}
	if err := r.has.Same(At(r.want[:r.at])); err != nil {
		return nil, fmt.Errorf("the first list was at no version: before event %d of %d, %w",
			r.at, len(r.want), err)
	}
	return rest, nil
}

// oldest is the first place at which the events are what is there now. Where there is none it is
// the place after the newest object.
func (r *reading) oldest() int {
	newest := 0
	for _, state := range r.has {
		for _, kind := range []watch.EventType{watch.Added, watch.Modified} {
			if at, known := r.place[Event{kind, state}]; known {
				newest = max(newest, at+1)
			}
		}
	}
	for at := newest; at < len(r.want); at++ {
		if r.has.Same(At(r.want[:at])) == nil {
			return at
		}
	}
	return newest
}

// follow takes notices as long as they are the next events. It gives those that are left, and says
// what is wrong with the first of them.
func (r *reading) follow(notices []Notice) ([]Notice, error) {
	for count, notice := range notices {
		if r.at >= len(r.want) {
			return notices[count:], fmt.Errorf("told after the last event: %v", notice)
		}
		if notice.Event != r.want[r.at] || fromList(notice) {
			return notices[count:], fmt.Errorf("told %v; the next of %d events is number %d: %v",
				notice, len(r.want), r.at, r.want[r.at])
		}
		if err := r.take(notice); err != nil {
			return notices[count:], err
		}
		r.told.Live++
		r.at++
	}
	return nil, nil
}

// relist takes the notices by which a list replaced everything, and gives those after it. They
// begin where the first one that only a list makes is, or something was left out, and end where the
// rest is the rest of the events.
func (r *reading) relist(notices []Notice) ([]Notice, error) {
	tail := 0
	for tail < len(notices) && r.at+tail < len(r.want) {
		notice := notices[len(notices)-1-tail]
		if fromList(notice) || notice.Event != r.want[len(r.want)-1-tail] {
			break
		}
		tail++
	}
	listed := notices[:len(notices)-tail]
	for _, notice := range listed {
		if err := r.take(notice); err != nil {
			return nil, fmt.Errorf("relist: %w", err)
		}
		r.told.Relisted++
		if notice.Tombstone {
			r.told.Tombstones++
		} else if notice.Type == watch.Deleted {
			return nil, fmt.Errorf("relist: a deletion without a tombstone: %v", notice)
		}
	}
	r.at = len(r.want) - tail
	if err := r.has.Same(At(r.want[:r.at])); err != nil {
		return nil, fmt.Errorf("the relist was at no version: before event %d of %d, %w",
			r.at, len(r.want), err)
	}
	return notices[len(notices)-tail:], nil
}

// take checks a notice against what its handler was told before: an add is of what is not there, an
// update replaces exactly what is, a deletion is of what is, and nothing goes back.
func (r *reading) take(notice Notice) error {
	held, there := r.has[notice.Name]
	switch {
	case notice.Type == watch.Added && there:
		return fmt.Errorf("added, but it is there at %s: %v", held.Version, notice)
	case notice.Type == watch.Modified && notice.Old != held:
		return fmt.Errorf("an update of what is not there (%s is): %v", held.Version, notice)
	case notice.Type == watch.Deleted && !there:
		return fmt.Errorf("deleted, but it is not there: %v", notice)
	case there && held.Version.Newer(notice.Version):
		return fmt.Errorf("back from %s: %v", held.Version, notice)
	}
	r.has.Apply(notice.Event)
	return nil
}

// fromList says whether only a relist can have made a notice: it deletes without having been told,
// or replaces an object by itself.
func fromList(notice Notice) bool {
	return notice.Tombstone || notice.Type == watch.Modified && notice.Old == notice.State
}
