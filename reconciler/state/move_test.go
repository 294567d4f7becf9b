package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	moveLogs = []string{"events"}
	moveLog  = Log[record]{Name: "events", At: func(record) time.Time { return time.Unix(1, 0) }}
)

// home is a place for records in a test: a file or an engine.
type home struct {
	name string
	// move opens it as a move does, start as weir does.
	move  func() (Movable, func())
	start func() error
}

func fileHome(t *testing.T) home {
	dir := t.TempDir()
	return home{"the file", func() (Movable, func()) {
		db, err := OpenToMove(dir)
		if err != nil {
			t.Fatal(err)
		}
		return db, func() { _ = db.Close() }
	}, func() error {
		db, err := Open(dir)
		if err != nil {
			return err
		}
		return db.Close()
	}}
}

func engineHome(t *testing.T, name string) home {
	e := newEngine()
	return home{name, func() (Movable, func()) {
		s, err := OpenSharedToMove(context.Background(), e.way(), "mover")
		if err != nil {
			t.Fatal(err)
		}
		return s, func() {}
	}, func() error {
		_, err := OpenShared(context.Background(), e.way(), "member")
		return err
	}}
}

// dying is a store whose process dies at its n-th change: before it, or after it.
type dying struct {
	Movable
	left  *int
	after bool
}

var errDied = errors.New("killed")

func (d dying) Update(fn func(*Tx) error) error {
	*d.left--
	if *d.left > 0 {
		return d.Movable.Update(fn)
	}
	if *d.left == 0 && d.after {
		if err := d.Movable.Update(fn); err != nil {
			return err
		}
	}
	return errDied
}

func move(from, to home, left int, after bool, alone func() error) error {
	f, closeF := from.move()
	defer closeF()
	t, closeT := to.move()
	defer closeT()
	return Move(Place{dying{f, &left, after}, from.name}, Place{dying{t, &left, after}, to.name}, moveLogs, alone, nobody)
}

func nobody() error { return nil }

func fillHome(t *testing.T, h home, n int) {
	t.Helper()
	s, done := h.move()
	defer done()
	err := s.Update(func(tx *Tx) error {
		return errors.Join(records.Put(tx, fmt.Sprint("a\x00", n), record{"one", n}), Bucket[record]{"other"}.Put(tx, "k", record{Name: strings.Repeat("x", 2*partSize)}),
			moveLog.Add(tx, []record{{N: n}, {N: n + 1}}, Keep{Most: 100, Since: time.Unix(0, 0)}))
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 70 {
		if err := s.Update(func(tx *Tx) error { return records.Put(tx, fmt.Sprintf("%03d", i), record{N: i}) }); err != nil {
			t.Fatal(err)
		}
	}
}

func inHome(t *testing.T, h home) content {
	t.Helper()
	s, done := h.move()
	defer done()
	c, err := contents(Place{s, h.name}, moveLogs)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRecordsAreMoved in each direction, and back; whenever the process dies, there is never
// more than one place that weir starts on, and the next call goes on.
func TestRecordsAreMoved(t *testing.T) {
	for name, homes := range map[string]func(t *testing.T) (home, home){
		"file to engine":   func(t *testing.T) (home, home) { return fileHome(t), engineHome(t, "the engine") },
		"engine to file":   func(t *testing.T) (home, home) { return engineHome(t, "the engine"), fileHome(t) },
		"engine to engine": func(t *testing.T) (home, home) { return engineHome(t, "the engine"), engineHome(t, "another") },
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dies after the change: %t", name, after), func(t *testing.T) {
				from, to := homes(t)
				fillHome(t, from, 1)
				want := inHome(t, from)
				for dies := 1; ; dies++ {
					err := move(from, to, dies, after, nobody)
					one, two := from.start(), to.start()
					if one == nil && two == nil && dies > 1 {
						t.Fatalf("both can be used after %d changes", dies)
					}
					if err == nil {
						var s *SealedError
						if two != nil || !errors.As(one, &s) || !strings.Contains(one.Error(), "were moved to "+to.name) {
							t.Errorf("the old one says %v, the new one %v", one, two)
						}
						break
					}
					if !errors.Is(err, errDied) {
						t.Fatal(err)
					}
					if dies > 60 {
						t.Fatal("it does not end")
					}
				}
				if diff := cmp.Diff(want.records, inHome(t, to).records); diff != "" || want.differs(inHome(t, to)) != "" {
					t.Error(want.differs(inHome(t, to)), diff)
				}
				if err := move(from, to, 1000, false, nobody); err != nil || to.start() != nil {
					t.Errorf("once more: %v", err)
				}
				// Something happens there, and back it goes.
				s, done := to.move()
				if err := s.Update(func(tx *Tx) error { return errors.Join(records.Put(tx, "new", record{}), records.Delete(tx, "001")) }); err != nil {
					t.Fatal(err)
				}
				done()
				want = inHome(t, to)
				if err := move(to, from, 1000, false, nobody); err != nil || from.start() != nil || to.start() == nil {
					t.Fatalf("back: %v", err)
				}
				if diff := want.differs(inHome(t, from)); diff != "" {
					t.Errorf("%s differs", diff)
				}
			})
		}
	}
}

// TestWhatIsNotMoved: over records that somebody needs, or from under somebody.
func TestWhatIsNotMoved(t *testing.T) {
	from, to, third := fileHome(t), engineHome(t, "the engine"), engineHome(t, "another")
	fillHome(t, from, 1)
	fillHome(t, third, 9)
	if err := move(from, third, 1000, false, nobody); err == nil || !strings.Contains(err.Error(), "has records of its own") || from.start() != nil || third.start() != nil {
		t.Errorf("over others: %v", err)
	}
	alive := errors.New("member a is alive")
	if err := move(from, to, 1000, false, func() error { return alive }); !errors.Is(err, alive) || from.start() != nil || to.start() != nil {
		t.Errorf("from under a member: %v, then %v and %v", err, from.start(), to.start())
	}
	if err := move(from, to, 4, false, nobody); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	if err := move(from, engineHome(t, "a third"), 1000, false, nobody); err == nil || !strings.Contains(err.Error(), "being moved to the engine") {
		t.Errorf("elsewhere, half way: %v", err)
	}
	if err := move(third, to, 1000, false, nobody); err == nil || !strings.Contains(err.Error(), "the file") {
		t.Errorf("to where others are under way: %v", err)
	}
	if err := move(from, to, 1000, false, nobody); err != nil {
		t.Error(err)
	}
}

// TestASealedStoreIsNotUsed, also by a process that began before.
func TestASealedStoreIsNotUsed(t *testing.T) {
	e := newEngine()
	w := e.way()
	before := mustShare(t, w, "a")
	s, err := OpenSharedToMove(context.Background(), e.way(), "mover")
	if err != nil {
		t.Fatal(err)
	}
	if err := (Place{s, "x"}).put(seal{moving, "y", time.Now()}); err != nil {
		t.Fatal(err)
	}
	_ = w.Refresh(context.Background())
	var sealed *SealedError
	for _, do := range []func(func(*Tx) error) error{before.View, before.Update} {
		if err := do(func(*Tx) error { return nil }); !errors.As(err, &sealed) {
			t.Errorf("used: %v", err)
		}
	}
	dir := t.TempDir()
	db := mustOpen(t, dir)
	if err := errors.Join((Place{db, "x"}).put(seal{moved, "y", time.Now()}), db.Close()); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string) (*DB, error){"to write": Open, "to read": OpenReadOnly} {
		if _, err := open(dir); !errors.As(err, &sealed) {
			t.Errorf("opened %s: %v", name, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("a sealed file was put aside: %v", files)
	}
}

// A file that lost records before it receives others keeps its loss, and the move ends.
func TestAMoveToAFileWithALoss(t *testing.T) {
	from, to := engineHome(t, "the engine"), fileHome(t)
	fillHome(t, from, 5)
	m, done := to.move()
	if err := Lose(m, "another process wrote to it"); err != nil {
		t.Fatal(err)
	}
	done()
	if err := move(from, to, 1<<30, false, nobody); err != nil {
		t.Error(err)
	}
}
