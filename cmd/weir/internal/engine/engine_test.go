package engine

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/state/keys"
	"github.com/weir-gitops/weir/reconciler/state/statetest"
)

func TestADaemonThatIsAloneHasNoEngine(t *testing.T) {
	if e, err := Open(t.Context(), &config.Config{Instance: "a"}, nil, nil); e != nil || err != nil {
		t.Errorf("%v, %v", e, err)
	}
}

// Daemons with one keysFile have the same keys, and one with another file has none.
func TestKeysOfAnInstance(t *testing.T) {
	memory, file := coordtest.NewMemory(), filepath.Join(t.TempDir(), "keys")
	c := &config.Config{Instance: "a", Coordination: config.Coordination{KeysFile: file}}
	keyOf := func(member, text string) ([]byte, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ring, err := Keys(c, statetest.Join(t, memory, member))
		if err != nil {
			return nil, err
		}
		return ring.Key(t.Context(), keys.Digest, nil)
	}
	one, err := keyOf("one", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n")
	if err != nil {
		t.Fatal(err)
	}
	if two, err := keyOf("two", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="); err != nil || !bytes.Equal(one, two) {
		t.Errorf("two daemons have two keys, %v", err)
	}
	for _, text := range []string{"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDI=\n", "short"} {
		if _, err := keyOf("other", text); err == nil {
			t.Errorf("%q gives a key", text)
		}
	}
}

// Each call is told once, with how it ended.
func TestCallsAreCounted(t *testing.T) {
	wire := coordtest.NewWire(coordtest.NewMemory())
	seen := map[string]int{}
	store := &counted{wire, func(operation, result string, took time.Duration) {
		seen[operation+" "+result]++
		if took < 0 {
			t.Errorf("%s took %s", operation, took)
		}
	}}
	e := coord.New(store, coord.Options{})
	s, err := e.Join(t.Context(), coord.Member{Name: "one"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "k", Value: []byte("v")}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "k", Value: []byte("v")}}}); !errors.Is(err, coord.ErrConflict) {
		t.Fatal(err)
	}
	if err := coord.NewMirror(e).Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OwnersOf(t.Context(), []string{"s"}); err != nil {
		t.Fatal(err)
	}
	wire.Once("Poll", coordtest.Fault{LoseAnswer: true})
	if _, err := e.Members(t.Context()); err == nil {
		t.Error("an answer that was lost is one")
	}
	wire.Mend()
	if err := s.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{"Enter success": 1, "Renew success": 1, "Commit success": 1, "Commit refused": 1, "OwnersOf success": 1, "Poll error": 1, "End success": 1} {
		if seen[what] != want {
			t.Errorf("%s: %d times, want %d: %v", what, seen[what], want, seen)
		}
	}
	if seen["List success"] == 0 || seen["Owners success"] == 0 {
		t.Errorf("%v", seen)
	}
}
