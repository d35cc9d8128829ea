package history

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

// coalesced leaves out what is replaced before the event of this number: a replica that was away
// until then tells only the newest of each object.
func coalesced(events []Event, until int) []Event {
	newest := map[string]int{}
	for at, event := range events[:until] {
		newest[event.Name] = at
	}
	has := States{}
	var told []Event
	for at, event := range events {
		if at < until && newest[event.Name] != at {
			continue
		}
		held, there := has[event.Name]
		switch {
		case event.Type == watch.Deleted && !there:
			continue
		case event.Type == watch.Deleted:
			event.UID = held.UID
		case there:
			event.Type = watch.Modified
		default:
			event.Type = watch.Added
		}
		told = append(told, event)
		has.Apply(event)
	}
	return told
}

func TestAReplicaMayLeaveOutWhatIsReplaced(t *testing.T) {
	_, events := ordered(t)
	for until := range len(events) + 1 {
		told := coalesced(events, until)
		if _, err := Followed(events, Watched(nil, told), TheEnd); err != nil {
			t.Errorf("away until %d: %v", until, err)
		}
	}
	if len(coalesced(events, len(events))) >= len(events) {
		t.Error("nothing was left out: the test is worth nothing")
	}
}

func TestAReplicaMayBeginAnywhereAndBeStoppedAnywhere(t *testing.T) {
	_, events := ordered(t)
	for from := range len(events) + 1 {
		had := At(events[:from])
		for until := from; until <= len(events); until++ {
			if _, err := Followed(events, Watched(had, events[from:until]), Stopped); err != nil {
				t.Errorf("from %d until %d: %v", from, until, err)
			}
		}
		if _, err := Followed(events, Watched(had, events[from:]), TheEnd); err != nil {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

func TestAReplicaThatIsAFaithfulServerPasses(t *testing.T) {
	_, events := ordered(t)
	for listed := range len(events) + 1 {
		for away := listed; away <= len(events); away++ {
			for back := away; back <= len(events); back++ {
				account := Account{Notices: telling(events, listed, away, back), Relists: 1}
				if away == back {
					account.Notices = telling(events, listed, len(events), len(events))
					account.Relists = 0
				}
				if _, err := Followed(events, account, TheEnd); err != nil {
					t.Errorf("listed %d away %d back %d: %v", listed, away, back, err)
				}
			}
		}
	}
}

func TestAReplicaThatLosesRepeatsGoesBackOrMakesUpIsFound(t *testing.T) {
	_, events := ordered(t)
	// The place of the deletion in the story.
	deletion := slices.IndexFunc(events, func(e Event) bool { return e.Type == watch.Deleted })
	for fault, spoil := range map[string]func([]Event) []Event{
		"loses the last": func(e []Event) []Event { return e[:len(e)-1] },
		"loses a deletion": func(e []Event) []Event {
			return slices.Delete(e, deletion, deletion+1)
		},
		"repeats a deletion": func(e []Event) []Event {
			return slices.Insert(e, deletion, e[deletion])
		},
		"repeats the last": func(e []Event) []Event { return append(e, e[len(e)-1]) },
		"goes back": func(e []Event) []Event {
			back := e[0]
			back.Type = watch.Modified
			return slices.Insert(e, 3, back)
		},
		"alters": func(e []Event) []Event { e[1].Body = "else"; return e },
		"tells a state of another version": func(e []Event) []Event {
			e[2].Version = "7"
			return e
		},
		"deletes what stays": func(e []Event) []Event {
			gone := e[len(e)-1]
			gone.Type = watch.Deleted
			return append(e, gone)
		},
		"deletes too early": func(e []Event) []Event {
			early := e[deletion]
			early.Version = e[0].Version
			return slices.Insert(slices.Delete(e, deletion, deletion+1), 1, early)
		},
	} {
		told := spoil(slices.Clone(events))
		if _, err := Followed(events, Watched(nil, told), TheEnd); err == nil {
			t.Errorf("a replica that %s passes", fault)
		}
	}
}

func TestATombstoneOfAReplicaNeedsARelist(t *testing.T) {
	_, events := ordered(t)
	account := Account{Notices: telling(events, 1, 2, 6)}
	if _, err := Followed(events, account, TheEnd); err == nil {
		t.Error("a tombstone without a relist passes")
	}
}
