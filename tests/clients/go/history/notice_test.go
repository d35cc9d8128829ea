package history

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

// telling is what a faithful informer tells that lists before event `listed`, is away from event
// `away` on, and lists again before event `back`.
func telling(events []Event, listed, away, back int) []Notice {
	has := At(events[:listed])
	var notices []Notice
	for _, state := range has {
		notices = append(notices, Notice{Event: Event{watch.Added, state}, Initial: true})
	}
	live := func(events []Event) {
		for _, event := range events {
			notice := Notice{Event: event}
			if event.Type == watch.Modified {
				notice.Old = has[event.Name]
			}
			notices = append(notices, notice)
			has.Apply(event)
		}
	}
	live(events[listed:away])
	if away == back {
		return notices
	}
	now := At(events[:back])
	for name, state := range has {
		if _, there := now[name]; !there {
			gone := Notice{Event: Event{watch.Deleted, state}, Tombstone: true}
			notices = append(notices, gone)
		}
	}
	for name, state := range now {
		if old, there := has[name]; there {
			update := Notice{Event: Event{watch.Modified, state}, Old: old}
			notices = append(notices, update)
		} else {
			notices = append(notices, Notice{Event: Event{watch.Added, state}})
		}
	}
	has = now
	live(events[back:])
	return notices
}

func TestAnInformerMayBeginAnywhereAndRelistAnywhere(t *testing.T) {
	_, events := ordered(t)
	for listed := range len(events) + 1 {
		for away := listed; away <= len(events); away++ {
			for back := away; back <= len(events); back++ {
				relists := 1
				if away == back {
					relists, away = 0, len(events)
				}
				notices := telling(events, listed, away, max(away, back))
				if _, err := Faithful(events, notices, relists, TheEnd); err != nil {
					t.Errorf("listed %d away %d back %d: %v", listed, away, back, err)
				}
			}
		}
	}
}

func TestAnInformerMayBeStoppedAnywhere(t *testing.T) {
	_, events := ordered(t)
	for listed := range len(events) + 1 {
		notices := telling(events, listed, len(events), len(events))
		initial := len(At(events[:listed]))
		for told := initial; told <= len(notices); told++ {
			if _, err := Faithful(events, notices[:told], 0, Stopped); err != nil {
				t.Errorf("listed %d told %d: %v", listed, told, err)
			}
			if told < initial+2 {
				continue
			}
			lost := slices.Delete(slices.Clone(notices[:told]), told-2, told-1)
			if _, err := Faithful(events, lost, 0, Stopped); err == nil {
				t.Errorf("listed %d told %d: losing one passes", listed, told)
			}
		}
	}
}

func TestAnInformerThatDidNotRelistMayLeaveOutNothing(t *testing.T) {
	_, events := ordered(t)
	if _, err := Faithful(events, telling(events, 1, 2, 5), 0, TheEnd); err == nil {
		t.Error("a gap without a relist passes")
	}
	told, err := Faithful(events, telling(events, 1, 2, 6), 1, TheEnd)
	if err != nil || told != (Told{Initial: 1, Live: 2, Relisted: 2, Tombstones: 1}) {
		t.Errorf("%+v, %v", told, err)
	}
}

func TestAnInformerThatLosesRepeatsOrSwapsIsFoundEvenIfItRelisted(t *testing.T) {
	_, events := ordered(t)
	steady := telling(events, 2, len(events), len(events))
	relisted := telling(events, 1, 3, 5)
	for fault, spoil := range map[string]func([]Notice) []Notice{
		"loses the first":  func(n []Notice) []Notice { return n[1:] },
		"loses the last":   func(n []Notice) []Notice { return n[:len(n)-1] },
		"repeats the last": func(n []Notice) []Notice { return append(n, n[len(n)-1]) },
		"swaps at the end": func(n []Notice) []Notice {
			n[len(n)-1], n[len(n)-2] = n[len(n)-2], n[len(n)-1]
			return n
		},
		"alters": func(n []Notice) []Notice { n[1].Body = "else"; return n },
	} {
		if _, err := Faithful(events, spoil(slices.Clone(steady)), 0, TheEnd); err == nil {
			t.Errorf("a steady informer that %s passes", fault)
		}
		if _, err := Faithful(events, spoil(slices.Clone(relisted)), 1, TheEnd); err == nil {
			t.Errorf("a relisted informer that %s passes", fault)
		}
	}
}

func TestADeletionIsNoTombstoneWithoutARelist(t *testing.T) {
	_, events := ordered(t)
	notices := telling(events, 2, len(events), len(events))
	for at := range notices {
		notices[at].Tombstone = notices[at].Type == watch.Deleted
	}
	if _, err := Faithful(events, notices, 0, TheEnd); err == nil {
		t.Error("a tombstone without a relist passes")
	}
}

func TestAListThatMixesTwoMomentsIsFound(t *testing.T) {
	_, events := ordered(t)
	notices := telling(events, 4, len(events), len(events))
	for at := range notices {
		if notices[at].Initial && notices[at].Name == "a" {
			// a as it was before its change at 8, b as it was after the one at 9.
			notices[at].State = events[0].State
		}
	}
	if _, err := Faithful(events, notices, 0, TheEnd); err == nil {
		t.Error("a list of two moments passes")
	}
}
