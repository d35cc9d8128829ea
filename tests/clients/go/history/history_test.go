package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// object is a ConfigMap whose every field is told by the arguments.
func object(name string, life, version int, shard string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            name,
		UID:             types.UID(fmt.Sprintf("%s/%d", name, life)),
		ResourceVersion: fmt.Sprint(version),
		Labels:          map[string]string{"shard": shard},
		Annotations:     map[string]string{MarkAnnotation: fmt.Sprint("mark ", version)},
	}, Data: map[string]string{"at": fmt.Sprint(version)}}
}

// story is a history: a is made, changed, moved to another shard and deleted, b is made and
// changed, a is made again. Versions have a gap, since others write too, and reach two digits.
func story(t *testing.T) (*Log, []Event) {
	t.Helper()
	log := &Log{}
	steps := []struct {
		kind   watch.EventType
		object *corev1.ConfigMap
	}{
		{watch.Added, object("a", 1, 5, "red")},
		{watch.Added, object("b", 1, 6, "blue")},
		{watch.Modified, object("a", 1, 8, "red")},
		{watch.Modified, object("b", 1, 9, "blue")},
		{watch.Modified, object("a", 1, 10, "blue")},
		{watch.Deleted, object("a", 1, 11, "blue")},
		{watch.Added, object("a", 2, 12, "red")},
	}
	var events []Event
	for _, step := range steps {
		seen := step.object.DeepCopy()
		if step.kind == watch.Deleted {
			seen = object("a", 1, 10, "blue")
			seen.ResourceVersion = "11"
			if err := log.Delete(step.object); err != nil {
				t.Fatal(err)
			}
		} else if err := log.Put(step.object); err != nil {
			t.Fatal(err)
		}
		event, err := EventOf(watch.Event{Type: step.kind, Object: seen})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	slices.Reverse(log.puts)
	return log, events
}

func ordered(t *testing.T) (*History, []Event) {
	t.Helper()
	log, events := story(t)
	history, err := log.Order(events)
	if err != nil {
		t.Fatal(err)
	}
	return history, events
}

func TestWritesAreOrderedByVersionsAsNumbers(t *testing.T) {
	history, events := ordered(t)
	want, err := history.Events(Selection{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Exactly(want, events); err != nil {
		t.Error(err)
	}
}

func TestEnteringASelectorIsAddedAndLeavingItIsDeleted(t *testing.T) {
	history, _ := ordered(t)
	for selector, want := range map[string]string{
		"shard=red":  "ADDED a 5, MODIFIED a 8, DELETED a 10, ADDED a 12",
		"shard=blue": "ADDED b 6, MODIFIED b 9, ADDED a 10, DELETED a 11",
	} {
		events, err := history.Events(Selection{Labels: selector})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, event := range events {
			told = append(told, fmt.Sprintf("%s %s %s", event.Type, event.Name, event.Version))
		}
		if told := strings.Join(told, ", "); told != want {
			t.Errorf("%s: %s; want %s", selector, told, want)
		}
	}
}

func TestAWatchThatLosesRepeatsSwapsOrAltersAnEventIsFound(t *testing.T) {
	_, events := ordered(t)
	for fault, spoil := range map[string]func([]Event) []Event{
		"loses one":     func(e []Event) []Event { return slices.Delete(e, 2, 3) },
		"ends early":    func(e []Event) []Event { return e[:len(e)-1] },
		"repeats one":   func(e []Event) []Event { return slices.Insert(e, 3, e[2]) },
		"swaps two":     func(e []Event) []Event { e[2], e[3] = e[3], e[2]; return e },
		"alters a body": func(e []Event) []Event { e[4].Body = "else"; return e },
		"renames":       func(e []Event) []Event { e[1].Type = watch.Modified; return e },
	} {
		if Exactly(events, spoil(slices.Clone(events))) == nil {
			t.Errorf("a watch that %s passes", fault)
		}
	}
}

func TestDeletionsThatDoNotFitTheWritesAreFound(t *testing.T) {
	for fault, spoil := range map[string]func([]Event) []Event{
		"is missing":       func(e []Event) []Event { return slices.Delete(e, 5, 6) },
		"comes twice":      func(e []Event) []Event { return append(e, e[5]) },
		"comes too early":  func(e []Event) []Event { e[5].Version = "9"; return e },
		"comes too late":   func(e []Event) []Event { e[5].Version = "13"; return e },
		"shares a version": func(e []Event) []Event { e[5].Version = "12"; return e },
		"is of someone":    func(e []Event) []Event { e[5].UID = "b/1"; return e },
	} {
		log, events := story(t)
		if _, err := log.Order(spoil(events)); err == nil {
			t.Errorf("a deletion that %s passes", fault)
		}
	}
}

func TestADeletionInTwoStepsIsTwoWrites(t *testing.T) {
	log, events := story(t)
	// a is moved at 10; it is marked at 11 and gone at 12; what was made at 12 is made at 13.
	marked, removed := events[4], events[5]
	marked.Version, marked.Ending = "11", true
	removed.Version, removed.Ending = "12", true
	for at := range log.puts {
		if log.puts[at].state.Version == "12" {
			log.puts[at].state.Version = "13"
		}
	}
	events[6].Version = "13"
	events = slices.Concat(events[:5], []Event{marked, removed}, events[6:])
	history, err := log.Order(events)
	if err != nil {
		t.Fatal(err)
	}
	want, err := history.Events(Selection{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Exactly(want, events); err != nil {
		t.Error(err)
	}
	twice := slices.Insert(slices.Clone(events), 6, marked)
	if _, err := log.Order(twice); err == nil {
		t.Error("an object that is marked twice passes")
	}
	late := slices.Concat(events[:5], []Event{removed, marked}, events[7:])
	if _, err := log.Order(late); err == nil {
		t.Error("an object that is marked after it is gone passes")
	}
}
