package instances

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/current"
)

func TestParseID(t *testing.T) {
	for text, want := range map[string]ID{
		"i-0123456789abcdef0":    {Text: "i-0123456789abcdef0", Whole: true},
		" I-0123456789ABCDEF0\n": {Text: "i-0123456789abcdef0", Whole: true},
		"i-01234567":             {Text: "i-01234567"},
		"i-0123456789ab":         {Text: "i-0123456789ab"},
		"i-0123456":              {},
		"i-0123456789abcdef01":   {},
		"i-0123456g":             {},
		"0123456789abcdef0":      {},
		"":                       {},
	} {
		got, err := ParseID(text)
		if got != want || (err == nil) != (want.Text != "") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// A short id is whole and the beginning of others. The exact one is meant.
func TestFindPrefersTheExactID(t *testing.T) {
	pool := plan.PoolStatus{Name: "web", Instances: []plan.Instance{{ID: "i-01234567"}, {ID: "i-0123456789abcdef0"}}}
	targets := []current.TargetState{{Target: current.Target{Name: "prod"}, Pools: []plan.PoolStatus{pool, pool}}}
	for text, want := range map[string]int{"i-01234567": 1, "i-0123456789": 1, "i-99999999": 0} {
		id, err := ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		if found := Find(targets, id); len(found) != want {
			t.Errorf("%s: %d found", text, len(found))
		}
	}
}

func TestAmbiguousNamesSome(t *testing.T) {
	if text := (ID{Text: "i-0"}).Ambiguous(strings.Fields("a b c d e f g h i j k l")); text != "the ids of 12 instances begin with i-0: a, b, c, d, e, f, g, h, i, j and 2 more" {
		t.Error(text)
	}
}

// With AWS alone, the tags of the group name the pool.
func TestOf(t *testing.T) {
	launched := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	machine := observed.Machine{
		ID: "i-1", Type: "m5.large", Zone: "eu-west-1a", ImageID: "ami-1", Market: "spot", State: "running", LaunchedAt: launched, GroupName: "g",
		Template: observed.TemplateRef{ID: "lt-1", Version: "3"}, Description: "weir:v1:0123456789abcdef:0123456789abcdef 9c1f0d2 bigger disks",
	}
	group := observed.Group{
		Name: "g", Template: observed.TemplateRef{ID: "lt-1", Version: "5"},
		Tags: map[string]observed.GroupTag{
			observed.TagOwner: {Value: "prod"}, observed.TagTarget: {Value: "eu"}, observed.TagPool: {Value: "default/web"}, observed.TagClusterPrefix + "blue": {Value: "owned"}, observed.TagNodegroup: {Value: "n"},
		},
		Instances: []observed.Instance{{ID: "i-1", LifecycleState: "InService", Zone: "eu-west-1a", Template: observed.TemplateRef{ID: "lt-1", Version: "3"}}},
	}
	base := Answer{
		Schema: Schema, Account: "1", Region: "eu-west-1", Group: "g", LaunchTemplateID: "lt-1", Commit: &Commit{Revision: "9c1f0d2", Subject: "bigger disks"},
		AWS: &Facts{LaunchedAt: launched, Market: "spot", State: "running", Image: &Image{ID: "ami-1"}},
	}
	whole := base
	whole.Instance = plan.Instance{ID: "i-1", TemplateVersion: "3", Zone: "eu-west-1a", Type: "m5.large", ImageID: "ami-1", State: "InService", Why: "runs template version 3, but the group uses 5"}
	whole.Owner, whole.Target, whole.Namespace, whole.Pool, whole.Cluster, whole.Nodegroup, whole.CurrentTemplateVersion = "prod", "eu", "default", "web", "blue", "n", "5"
	alone := base
	alone.Instance = plan.Instance{ID: "i-1", TemplateVersion: "3", Zone: "eu-west-1a", Type: "m5.large", ImageID: "ami-1", State: "running"}
	unread, none, unowned := alone, alone, whole
	unread.Notes = []string{"the Auto Scaling group g cannot be read"}
	none.Group, none.Notes = "", []string{"the instance is in no Auto Scaling group, so it is in no pool"}
	unowned.Owner, unowned.Target, unowned.Namespace, unowned.Pool, unowned.Cluster, unowned.Nodegroup = "", "", "", "", "", ""
	unowned.Notes = []string{"the Auto Scaling group g has no weir.dev/owner tag, so no weir manages it"}
	for name, c := range map[string]struct {
		edit func(m *observed.Machine)
		want Answer
	}{
		"whole":      {func(m *observed.Machine) { m.Group = &group }, whole},
		"group gone": {func(m *observed.Machine) { m.Notes = []string{"the Auto Scaling group g cannot be read"} }, unread},
		"no group":   {func(m *observed.Machine) { m.GroupName = "" }, none},
		"unowned":    {func(m *observed.Machine) { g := group; g.Tags = nil; m.Group = &g }, unowned},
	} {
		m := machine
		c.edit(&m)
		if d := cmp.Diff(c.want, Of(m, "1", "eu-west-1")); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

func TestCacheReadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		fails := false
		c := NewCache(func(context.Context, string, []string) ([]observed.Machine, error) {
			reads.Add(1)
			time.Sleep(time.Second)
			if fails {
				return nil, errors.New("denied")
			}
			return []observed.Machine{{ID: "i-1"}}, nil
		}, time.Now)
		ask := func() error {
			found, err := c.Facts(t.Context(), "prod", []string{"i-1"})
			if err == nil && found["i-1"] == nil {
				t.Errorf("answer %+v", found)
			}
			return err
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := ask(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, step := range []struct {
			wait  time.Duration
			reads int32
			fails bool
		}{{29 * time.Second, 1, false}, {2 * time.Second, 2, false}, {31 * time.Second, 3, true}, {4 * time.Second, 3, true}, {2 * time.Second, 4, true}} {
			time.Sleep(step.wait)
			fails = step.fails
			if err := ask(); (err != nil) != step.fails {
				t.Error(err)
			}
			if reads.Load() != step.reads {
				t.Errorf("%d reads, want %d", reads.Load(), step.reads)
			}
		}
	})
}

// A caller that leaves does not end the read for others, and AWS cannot block a caller.
func TestCacheIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(func(ctx context.Context, _ string, _ []string) ([]observed.Machine, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, time.Now)
		began := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := c.Machines(gone, "prod", []string{"i-1"}); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		synctest.Wait()
		if _, err := c.Machines(t.Context(), "prod", []string{"i-1"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != patience {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		all.Wait()
	})
}

func TestFactsOfAnInstanceThatEnded(t *testing.T) {
	c := NewCache(func(context.Context, string, []string) ([]observed.Machine, error) { return nil, nil }, time.Now)
	if err := c.AddFacts(t.Context(), &Answer{}); err == nil || err.Error() != "EC2 no longer has the instance" {
		t.Error(err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := NewCache(func(context.Context, string, []string) ([]observed.Machine, error) { return nil, nil }, time.Now)
	for i := range 3 * mostCached {
		if _, err := c.Machines(t.Context(), "prod", []string{"i-" + time.Duration(i).String()}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.entries); n > mostCached {
		t.Errorf("%d entries", n)
	}
}

// Readers that ask for many instances do not use up AWS's limits.
func TestReadsAtTheSameTimeAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		c := NewCache(func(context.Context, string, []string) ([]observed.Machine, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(4 * time.Second)
			return nil, nil
		}, time.Now)
		var all sync.WaitGroup
		var busy atomic.Int32
		for i := range 3 * mostReads {
			all.Go(func() {
				if _, err := c.Machines(t.Context(), "prod", []string{"i-" + time.Duration(i).String()}); errors.Is(err, errBusy) {
					busy.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most.Load() != mostReads || busy.Load() != mostReads {
			t.Errorf("%d reads at the same time, %d were refused", most.Load(), busy.Load())
		}
	})
}

// A pool that moved to another target is shown as its new target read it.
func TestFindPrefersTheNewerRead(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	pool := []plan.PoolStatus{{Name: "web", Instances: []plan.Instance{{ID: "i-01234567"}}}}
	targets := []current.TargetState{
		{Target: current.Target{Name: "a"}, Pools: pool, PoolsAt: at}, {Target: current.Target{Name: "b"}, Pools: pool, PoolsAt: at.Add(time.Hour)}, {Target: current.Target{Name: "c"}, Pools: pool, PoolsAt: at},
	}
	if found := Find(targets, ID{Text: "i-01234567"}); len(found) != 1 || found[0].Target.Name != "b" {
		t.Errorf("%+v", found)
	}
}
