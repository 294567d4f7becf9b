package state

import (
	"strings"
	"testing"
)

// whyLost is what a store says was lost, empty for nothing.
func whyLost(t *testing.T, s Store) string {
	t.Helper()
	why := ""
	if err := s.View(func(tx *Tx) error {
		l, err := LossOf(tx)
		if l != nil {
			why = l.Why
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return why
}

// Records that are found in another engine than they were written in are those of a backup:
// a process that runs sees that as one that starts does, until somebody accepts it.
func TestRecordsOfAnotherEngineAreALoss(t *testing.T) {
	e := newEngine()
	e.is("e1")
	w := e.way()
	s, err := OpenShared(t.Context(), w, "one")
	if err != nil {
		t.Fatal(err)
	}
	if why := whyLost(t, s); why != "" {
		t.Fatalf("lost: %s", why)
	}
	for _, tc := range []struct {
		what, say string
		change    func()
	}{
		{"restored", "restored from a backup", func() { e.is("e2") }},
		{"wiped", "no records any more", func() { clear(e.records); e.is("e3") }},
		{"copied back", "restored from a backup", func() { e.is("e1") }},
	} {
		tc.change()
		if err := w.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if why := whyLost(t, s); !strings.Contains(why, tc.say) {
			t.Errorf("%s beneath a daemon: lost %q", tc.what, why)
		}
		if tc.what != "wiped" { // then it begins anew: where AWS says whether that is a loss
			next, err := OpenShared(t.Context(), e.way(), "two")
			if err != nil {
				t.Fatal(err)
			}
			if why := whyLost(t, next); !strings.Contains(why, tc.say) {
				t.Errorf("%s: lost %q", tc.what, why)
			}
		}
		if err := s.Update(AcceptLoss); err != nil {
			t.Fatal(err)
		}
		next, err := OpenShared(t.Context(), e.way(), "three")
		if err != nil {
			t.Fatal(err)
		}
		for _, store := range []*Shared{s, next} {
			if why := whyLost(t, store); why != "" {
				t.Errorf("%s, and accepted: lost %q", tc.what, why)
			}
		}
		if err := CheckLoss(next, "1/eu-west-1", true); err != nil {
			t.Errorf("%s, and accepted: %v", tc.what, err)
		}
	}
}
