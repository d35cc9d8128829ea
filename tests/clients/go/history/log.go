package history

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Log is what the writers did. They write into it what the server answered, in any order.
type Log struct {
	mutex   sync.Mutex
	puts    []put
	deleted map[types.UID]string
}

type put struct {
	state      State
	attributes Attributes
}

// Put notes a create, an update or a patch that the server answered with this object.
func (l *Log) Put(object metav1.Object) error {
	state, err := Read(object)
	if err != nil {
		return err
	}
	attributes, err := AttributesOf(object)
	if err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.puts = append(l.puts, put{state, attributes})
	return nil
}

// Delete notes a deletion that the server took. It does not say at which version: a watch does. Nor
// does it say whether the object was first marked, which is a write of its own: that of a pod is,
// even without a grace period, on servers that leave it to a later step to remove it.
func (l *Log) Delete(object metav1.Object) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.deleted == nil {
		l.deleted = map[types.UID]string{}
	}
	if name, twice := l.deleted[object.GetUID()]; twice {
		return fmt.Errorf("object %s was deleted twice", name)
	}
	l.deleted[object.GetUID()] = object.GetName()
	return nil
}

// Count says how many writes were noted.
func (l *Log) Count() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.puts) + len(l.deleted)
}

// Change is one write, in its place among all others.
type Change struct {
	Version Version
	// Before is nil for a create, After for a deletion.
	Before, After *put
}

// History is every write in the order of versions.
type History struct {
	changes []Change
}

// Changes says how many writes there are.
func (h *History) Changes() int {
	return len(h.changes)
}

// Order puts all writes into their order. What only a watch can tell, how deletions went, comes
// from the events of one; they must fit what was written. Whether the other events of that watch
// are right is for Exactly to say.
func (l *Log) Order(events []Event) (*History, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	lives, err := l.lives()
	if err != nil {
		return nil, err
	}
	ends, err := l.ends(events)
	if err != nil {
		return nil, err
	}
	history := &History{}
	for uid, life := range lives {
		var before *put
		for at := range life {
			after := &life[at]
			history.changes = append(history.changes, Change{after.state.Version, before, after})
			before = after
		}
		if _, deleted := l.deleted[uid]; !deleted {
			continue
		}
		end, err := ends[uid].after(before)
		if err != nil {
			return nil, err
		}
		history.changes = append(history.changes, end...)
	}
	slices.SortFunc(history.changes, func(a, b Change) int { return a.Version.Compare(b.Version) })
	return history, history.consistent()
}

// lives are the writes of each object, by version.
func (l *Log) lives() (map[types.UID][]put, error) {
	lives := map[types.UID][]put{}
	for _, put := range l.puts {
		lives[put.state.UID] = append(lives[put.state.UID], put)
	}
	for uid := range l.deleted {
		if _, known := lives[uid]; !known {
			return nil, fmt.Errorf("%s was deleted and never written", uid)
		}
	}
	for _, life := range lives {
		slices.SortFunc(life, func(a, b put) int {
			return a.state.Version.Compare(b.state.Version)
		})
	}
	return lives, nil
}

// end is how a watch told of a deletion.
type end struct {
	marked, removed *Event
}

// ends are the deletions that a watch told of.
func (l *Log) ends(events []Event) (map[types.UID]end, error) {
	ends := map[types.UID]end{}
	for _, event := range events {
		if event.Type != watch.Deleted && !event.Ending {
			continue
		}
		if _, ours := l.deleted[event.UID]; !ours {
			return nil, fmt.Errorf("a deletion was seen that nobody asked for: %v", event)
		}
		seen := ends[event.UID]
		switch {
		case seen.removed != nil:
			return nil, fmt.Errorf("seen after its deletion: %v", event)
		case event.Type == watch.Deleted:
			seen.removed = &event
		case seen.marked != nil:
			return nil, fmt.Errorf("marked for deletion twice: %v", event)
		default:
			seen.marked = &event
		}
		ends[event.UID] = seen
	}
	return ends, nil
}

// after gives the changes that ended an object whose last write is known.
func (e end) after(last *put) ([]Change, error) {
	if e.removed == nil {
		return nil, fmt.Errorf("the deletion of %v was never seen", last.state)
	}
	var changes []Change
	if e.marked != nil {
		marked := *last
		marked.state.Version, marked.state.Ending = e.marked.Version, true
		changes = append(changes, Change{e.marked.Version, last, &marked})
		last = &marked
	}
	changes = append(changes, Change{e.removed.Version, last, nil})
	for _, change := range changes {
		if before := change.Before.state.Version; !change.Version.Newer(before) {
			return nil, fmt.Errorf("%s was deleted at %s, but written at %s before",
				change.Before.state.Name, change.Version, before)
		}
	}
	return changes, nil
}

// consistent checks that no two writes have the same version, and that no two objects had a name at
// the same time.
func (h *History) consistent() error {
	var faults []error
	holders := map[string]types.UID{}
	for at, change := range h.changes {
		if at > 0 && change.Version == h.changes[at-1].Version {
			faults = append(faults, fmt.Errorf("two writes were given version %s", change.Version))
		}
		switch {
		case change.Before == nil:
			name := change.After.state.Name
			if holder, held := holders[name]; held {
				faults = append(faults, fmt.Errorf("%s was created at %s while %s had the name",
					name, change.Version, holder))
			}
			holders[name] = change.After.state.UID
		case change.After == nil:
			delete(holders, change.Before.state.Name)
		}
	}
	return errors.Join(faults...)
}
