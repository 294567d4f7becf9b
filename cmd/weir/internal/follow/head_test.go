package follow

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/source/snapshot"
)

// With several daemons only the published commit may be applied, whatever a member has read or kept from before; and a commit counts by the number under
// which it was published last.
func TestOnlyThePublishedCommitMayBeApplied(t *testing.T) {
	t.Parallel()
	engine := coord.New(coordtest.NewMemory(), coord.Options{})
	c, err := membership.Open(t.Context(), membership.Options{Engine: engine, Member: coord.Member{Name: "a"}, Logger: slog.New(slog.DiscardHandler), Scopes: func() []coord.Scope { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	leader, err := engine.Join(t.Context(), coord.Member{Name: "leader"}, coord.TTL)
	if err != nil {
		t.Fatal(err)
	}
	f := &Source{Member: c, Config: config.Source{Name: "pools"}, view: fleet.View{ID: "0123", Snapshot: snapshot.Snapshot{Revision: "one"}}}
	wants := func(head string, seq int64) {
		t.Helper()
		for _, commit := range []string{"one", "two"} {
			if f.isHead(commit) != (commit == head) {
				t.Errorf("head %q: %s may be applied: %t", head, commit, f.isHead(commit))
			}
		}
		if got := f.Now().Seq; got != seq {
			t.Errorf("head %q: what was read has the number %d, want %d", head, got, seq)
		}
	}
	wants("", 0)
	for i, step := range []struct {
		head string
		seq  int64
	}{{"one", 1}, {"two", 1}, {"one", 3}} {
		value := fmt.Appendf(nil, `{"seq":%d,"commit":%q}`, i+1, step.head)
		if _, err := leader.Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "head/0123/pools", Value: value, If: coord.Any}}}); err != nil {
			t.Fatal(err)
		}
		if err := c.Mirror.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		wants(step.head, step.seq)
	}
	alone := &Source{Config: config.Source{Name: "pools"}}
	if !alone.isHead("one") {
		t.Error("a daemon alone applies what it reads")
	}
}
