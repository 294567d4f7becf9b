package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func abort(from, to home, left int, after bool) error {
	f, closeF := from.move()
	defer closeF()
	t, closeT := to.move()
	defer closeT()
	return Abort(Place{dying{f, &left, after}, from.name}, &Place{dying{t, &left, after}, to.name}, to.name, moveLogs, nobody)
}

// Wherever a move stopped, and wherever an abort of it stops, weir goes on where it was with all that was there, never in both places with records,
// and the records can be moved again.
func TestAMoveIsAborted(t *testing.T) {
	for name, homes := range map[string]func(t *testing.T) (home, home){
		"file to engine":   func(t *testing.T) (home, home) { return fileHome(t), engineHome(t, "the engine") },
		"engine to file":   func(t *testing.T) (home, home) { return engineHome(t, "the engine"), fileHome(t) },
		"engine to engine": func(t *testing.T) (home, home) { return engineHome(t, "the engine"), engineHome(t, "another") },
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dies after the change: %t", name, after), func(t *testing.T) {
				for dies := 1; ; dies++ {
					from, to := homes(t)
					fillHome(t, from, 1)
					want := inHome(t, from)
					stopped := move(from, to, dies, after, nobody)
					if stopped == nil {
						if err := abort(from, to, 1000, false); err == nil || !strings.Contains(err.Error(), "the move is done") || from.start() == nil || to.start() != nil {
							t.Errorf("a move that is done is aborted: %v", err)
						}
						return
					}
					if from.start() == nil { // it had not begun, by what the old place says
						if err := abort(from, to, 1000, false); err == nil || !strings.Contains(err.Error(), "no move from") {
							t.Errorf("no move is aborted: %v", err)
						}
						continue
					}
					whole := to.start() == nil && len(inHome(t, to).records) > 0 // killed once it was open
					for again := 1; ; again++ {
						err := abort(from, to, again, after)
						if from.start() == nil && to.start() == nil && len(inHome(t, to).records) > 0 {
							t.Fatalf("stopped at %d and %d, both have records and can be used", dies, again)
						}
						if err == nil || whole {
							break
						}
						// An abort that died after its last change says that there is nothing left to abort.
						if strings.Contains(err.Error(), "no move from") && again > 1 {
							break
						}
						if !errors.Is(err, errDied) || again > 20 {
							t.Fatalf("stopped at %d, aborted %d times: %v", dies, again, err)
						}
					}
					if whole {
						continue
					}
					if err := from.start(); err != nil || want.differs(inHome(t, from)) != "" {
						t.Fatalf("stopped at %d: %v, %s differs", dies, err, want.differs(inHome(t, from)))
					}
					if got := inHome(t, to); len(got.records)+len(got.logs["events"]) > 0 {
						t.Fatalf("stopped at %d: the new place has %d kinds of records", dies, len(got.records))
					}
					if err := move(from, to, 1000, false, nobody); err != nil || want.differs(inHome(t, to)) != "" {
						t.Fatalf("stopped at %d, then moved: %v, %s differs", dies, err, want.differs(inHome(t, to)))
					}
				}
			})
		}
	}
}

// A new place that is gone for good keeps nobody from the old one, but where all may have been moved.
func TestAMoveToWhatIsGoneIsAborted(t *testing.T) {
	from, to := fileHome(t), engineHome(t, "the engine")
	fillHome(t, from, 1)
	alone := func(alone func() error) error {
		f, done := from.move()
		defer done()
		return Abort(Place{f, from.name}, nil, to.name, moveLogs, alone)
	}
	if err := move(from, to, 5, false, nobody); !errors.Is(err, errDied) || from.start() == nil {
		t.Fatal(err)
	}
	alive := errors.New("a member is alive")
	if err := alone(func() error { return alive }); !errors.Is(err, alive) || from.start() == nil {
		t.Errorf("beside a member: %v", err)
	}
	if err := alone(nobody); err != nil || from.start() != nil || to.start() == nil {
		t.Errorf("%v; the old place says %v, the new one %v", err, from.start(), to.start())
	}
	if err := move(from, to, 1000, false, nobody); err != nil {
		t.Fatal(err)
	}
	if err := alone(nobody); err == nil || !strings.Contains(err.Error(), "must be reachable") || from.start() == nil {
		t.Errorf("what was moved is used again: %v", err)
	}
}
