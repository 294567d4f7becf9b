package relocation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/relocation"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/members"
)

// cluster are members over one engine in memory.
type cluster struct {
	memory *coordtest.Memory
	wanted []members.Wanted
}

type node struct {
	*relocation.Dispatcher
	wire   *coordtest.Wire
	mirror *coord.Mirror
	stop   context.CancelFunc
	done   chan struct{}
}

func newCluster(scopes int) *cluster {
	c := &cluster{memory: coordtest.NewMemory()}
	for i := range scopes {
		c.wanted = append(c.wanted, members.Wanted{Key: fmt.Sprintf("scope/aws/%012d/eu-west-1", i), Targets: []string{fmt.Sprint("target-", i)}})
	}
	return c
}

func (c *cluster) start(ctx context.Context, name string) *node {
	n := &node{done: make(chan struct{}), wire: coordtest.NewWire(c.memory)}
	engine := coord.New(n.wire, coord.Options{Clock: coordtest.NewClock()})
	mirror := coord.NewMirror(engine)
	n.mirror = mirror
	keeper := coord.NewKeeper(coord.KeeperOptions{
		Engine: engine, Mirror: mirror, Member: coord.Member{Name: name},
		Scopes: func() (out []coord.Scope) {
			for _, w := range c.wanted {
				out = append(out, coord.Scope{Key: w.Key, Weight: 1})
			}
			return out
		},
		Run: work,
	})
	n.Dispatcher = relocation.New(relocation.Options{
		Kind: "memory", Member: name, Keeper: keeper, Mirror: mirror, Wanted: func() []members.Wanted { return c.wanted }, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, n.stop = context.WithCancel(ctx)
	run := make(chan struct{})
	go func() { defer close(run); _ = n.Run(ctx) }()
	go func() { defer close(n.done); keeper.Run(ctx); <-run }()
	return n
}

// work goes on until it is to end.
func work(l *coord.Lease) {
	for l.Context().Err() == nil {
		l.Progress()
		select {
		case <-time.After(10 * time.Second):
		case <-l.Context().Done():
		}
	}
}

func (n *node) end() { n.stop(); <-n.done }

// owners are the numbers of scopes by member, nobody's under "".
func owners(v members.View) map[string]int {
	out := map[string]int{}
	for _, o := range v.Owned {
		out[o.Owner]++
	}
	return out
}

func wantFault(t *testing.T, err error, text string) {
	t.Helper()
	var wrong *gates.Fault
	if !errors.As(err, &wrong) || !strings.Contains(wrong.Message, text) || wrong.Hint == "" {
		t.Errorf("want a fault with %q, got %v", text, err)
	}
}

// drainEachOther has two members drain, each through the other one, at the same moment.
func drainEachOther(t *testing.T, one, two *node) (errs [2]error) {
	var asked sync.WaitGroup
	for i, n := range []*node{one, two} {
		asked.Go(func() { _, errs[i] = n.Drain(t.Context(), commands.Move{Member: []string{"two", "one"}[i]}) })
	}
	asked.Wait()
	return errs
}

// Two people drain two members, each through the other one, at the same moment: one goes on owning what there is.
func TestNotAllMembersDrainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(12)
		one, two := c.start(t.Context(), "one"), c.start(t.Context(), "two")
		defer one.end()
		defer two.end()
		time.Sleep(2 * time.Minute)
		for _, n := range []*node{one, two} {
			n.wire.Arm(func(call string) coordtest.Fault {
				if call == "Commit" {
					return coordtest.Fault{Slow: 500 * time.Millisecond} // neither has seen what the other asks
				}
				return coordtest.Fault{}
			})
		}
		errs := drainEachOther(t, one, two)
		if errs[0] == nil && errs[1] == nil {
			t.Error("both drain")
		}
		for _, err := range errs {
			if err != nil {
				wantFault(t, err, "no other member could take")
			}
		}
		time.Sleep(time.Minute)
		if got := owners(one.View()); got[""] > 0 {
			t.Errorf("owned: %v", got)
		}
	})
}

// What a member asks for is stored, and then it cannot read what the other one asks for.
func TestNotAllMembersDrainThatCannotReadAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(12)
		one, two := c.start(t.Context(), "one"), c.start(t.Context(), "two")
		defer one.end()
		defer two.end()
		time.Sleep(2 * time.Minute)
		for _, n := range []*node{one, two} {
			var until time.Time
			n.wire.Arm(func(call string) coordtest.Fault {
				if call == "Commit" {
					until = time.Now().Add(3 * time.Second)
					return coordtest.Fault{Slow: 500 * time.Millisecond}
				}
				return coordtest.Fault{LoseRequest: call == "Poll" && time.Now().Before(until)}
			})
		}
		errs := drainEachOther(t, one, two)
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("one drains, and the other request is refused: %v", errs)
		}
		time.Sleep(time.Minute)
		if got := owners(one.View()); got[""] > 0 || len(got) != 1 {
			t.Errorf("owned: %v", got)
		}
	})
}

func TestAMemberDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(12)
		one := c.start(t.Context(), "one")
		defer one.end()
		time.Sleep(time.Minute)
		_, err := one.Drain(t.Context(), commands.Move{})
		wantFault(t, err, "no other member could take")
		two, three := c.start(t.Context(), "two"), c.start(t.Context(), "three")
		defer two.end()
		time.Sleep(2 * time.Minute)
		before := owners(one.View())
		if before["one"] == 0 || before["two"] == 0 || before["three"] == 0 {
			t.Fatalf("the work is not shared: %v", before)
		}

		// Any member is asked, and the one that is meant heeds.
		out, err := one.Drain(t.Context(), commands.Move{Member: "two", By: "ann"})
		if err != nil || !out.Followed || out.Member != "two" || out.Left != 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		time.Sleep(10 * time.Second)
		if got := owners(three.View()); got["two"] != 0 || got[""] != 0 || got["one"]+got["three"] != 12 {
			t.Errorf("drained: %v", got)
		}
		_, err = one.Take(t.Context(), commands.Move{Scope: "target-3", Member: "two"})
		wantFault(t, err, "two drains")
		// It takes nothing when somebody goes either.
		three.end()
		time.Sleep(time.Minute)
		if got := owners(one.View()); got["one"] != 12 {
			t.Errorf("with one member that drains and one that does not: %v", got)
		}
		_, err = two.Drain(t.Context(), commands.Move{Member: "one"})
		wantFault(t, err, "no other member could take")

		if out, err = one.Drain(t.Context(), commands.Move{Member: "two", Undo: true}); err != nil || !out.Followed || !out.Undo {
			t.Fatalf("%+v, %v", out, err)
		}
		time.Sleep(2 * time.Minute)
		if got := owners(one.View()); got["two"] == 0 {
			t.Errorf("it takes nothing again: %v", got)
		}
		_, err = one.Drain(t.Context(), commands.Move{Member: "three"})
		wantFault(t, err, `no member is called "three"`)
	})
}

func TestAMemberTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(6)
		one, two := c.start(t.Context(), "one"), c.start(t.Context(), "two")
		defer one.end()
		defer two.end()
		time.Sleep(2 * time.Minute)
		for _, to := range []string{"one", "two"} {
			out, err := one.Take(t.Context(), commands.Move{Scope: "000000000004/eu-west-1", Member: to})
			if err != nil || !out.Followed || out.Scope != c.wanted[4].Key {
				t.Fatalf("%+v, %v", out, err)
			}
			time.Sleep(time.Minute)
			v := two.View()
			if o, _ := v.OwnerOf("target-4"); o.Owner != to {
				t.Errorf("%s owns it, want %s", o.Owner, to)
			}
		}
		_, err := one.Take(t.Context(), commands.Move{Scope: "nothing"})
		wantFault(t, err, `no member, scope or source is called "nothing"`)
		_, err = one.Take(t.Context(), commands.Move{Scope: "target-1", Member: "nobody"})
		wantFault(t, err, `no member is called "nobody"`)
	})
}

// The engine stores a request that a member cannot heed yet, and the member heeds it
// later.
func TestWhatIsAskedOfAMemberThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(6)
		one, two := c.start(t.Context(), "one"), c.start(t.Context(), "two")
		defer one.end()
		defer two.end()
		time.Sleep(2 * time.Minute)
		two.wire.Cut()
		time.Sleep(time.Second)
		out, err := one.Drain(t.Context(), commands.Move{Member: "two"})
		if err != nil || !out.Followed || out.Left != 0 {
			t.Errorf("a member that is given up owns nothing: %+v, %v", out, err)
		}
		time.Sleep(30 * time.Second)
		if v := two.View(); v.Engine.Error == "" || v.Engine.Lag < 10 {
			t.Errorf("it does not say that it is cut off: %+v", v.Engine)
		}
		if _, err := two.Take(t.Context(), commands.Move{Scope: "target-1"}); err == nil {
			t.Error("it takes what it cannot store")
		}
		two.wire.Mend()
		time.Sleep(2 * time.Minute)
		v := one.View()
		if got := owners(v); got["two"] != 0 || got["one"] != 6 || len(v.Members) != 2 || !v.Members[1].Draining {
			t.Errorf("it forgot: %v %+v", got, v.Members)
		}

		// A request that does not get there is stored, and the caller hears so.
		two.wire.Arm(func(call string) coordtest.Fault { return coordtest.Fault{LoseRequest: call == "Poll", Hang: true} })
		if out, err = one.Drain(t.Context(), commands.Move{Member: "two", Undo: true}); err != nil || out.Followed {
			t.Errorf("%+v, %v", out, err)
		}
		two.wire.Mend()
		time.Sleep(2 * time.Minute)
		if got := owners(one.View()); got["two"] == 0 {
			t.Errorf("what was stored is not heeded: %v", got)
		}
	})
}

// The caller of a command hears which owners have read it, and whether those are all.
func TestOwnersHaveReadWhatWasStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(6)
		one, two := c.start(t.Context(), "one"), c.start(t.Context(), "two/2")
		defer one.end()
		defer two.end()
		time.Sleep(2 * time.Minute)
		v := one.View()
		other := slices.IndexFunc(v.Owned, func(o members.Owned) bool { return o.Owner == "two/2" })
		if other < 0 {
			t.Fatalf("%+v", v.Owned)
		}
		theirs := v.Owned[other].Targets
		start := time.Now()
		if by, all := one.Followers(t.Context(), theirs); !all || !slices.Equal(by, []string{"two/2"}) {
			t.Errorf("%v, %t", by, all)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		if by, all := one.Followers(t.Context(), nil); !all || !slices.Equal(by, []string{"one", "two/2"}) {
			t.Errorf("%v, %t", by, all)
		}
		if by, all := one.Followers(t.Context(), []string{"unknown"}); all || len(by) != 0 {
			t.Errorf("nobody owns it: %v, %t", by, all)
		}

		// One that does not read answers nothing, whoever else does.
		two.wire.Arm(func(call string) coordtest.Fault { return coordtest.Fault{LoseRequest: call == "Poll", Hang: true} })
		time.Sleep(time.Second)
		start = time.Now()
		if by, all := one.Followers(t.Context(), nil); all || !slices.Equal(by, []string{"one"}) {
			t.Errorf("%v, %t", by, all)
		}
		if took := time.Since(start); took > 7*time.Second {
			t.Errorf("it took %s", took)
		}
		two.wire.Mend()

		// Old questions are deleted.
		time.Sleep(2 * time.Minute)
		_, _ = one.Followers(t.Context(), theirs)
		time.Sleep(10 * time.Second)
		if n := len(one.mirror.Snapshot().List("heed/")); n != 2 {
			t.Errorf("%d records are left", n)
		}
	})
}
