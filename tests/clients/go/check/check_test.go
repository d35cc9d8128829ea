package check

import (
	"errors"
	"strings"
	"testing"
)

func TestWhatIsNotJudgedIsNotGood(t *testing.T) {
	var out strings.Builder
	printer := &Printer{Out: &out}
	run := &Run{Name: "a", printer: printer}
	run.Report("b", nil, "%d things", 2)
	run.Report("c", errors.New("no"), "one thing")
	run.Skip("d", "after %d s", 3)
	want := "ok   a/b: 2 things\nFAIL a/c: one thing: no\nskip a/d: after 3 s\n"
	if out.String() != want {
		t.Errorf("said %q, not %q", out.String(), want)
	}
	if counted := printer.Counts().String(); counted != "1 ok, 1 failed, 1 skipped" {
		t.Errorf("counted %s", counted)
	}
}
