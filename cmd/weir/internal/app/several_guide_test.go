package app

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/members"
)

// What the guide of several weirs promises, in the order of the guide.

// An account and region is owned as one, whatever roles lead there, and weighs as much as it has pools.
func TestRolesIntoOneAccountShareAnOwner(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	const account = "111122223333"
	shared := membership.ScopeKey("aws", account, "eu-west-1", s.url)
	for _, name := range []string{"second", "third"} {
		s.extra += "- {name: " + name + ", path: overlays/" + name + ", region: eu-west-1, roleARN: 'arn:aws:iam::" + account + ":role/" + name + "'}\n"
	}
	s.give(map[string]string{shared: "a"})
	s.repo.Write(fleetOf("m5.large", "prod", "second", "third"))
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3), "api": pool("api", "m5.large", 3), "batch": pool("batch", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	for target := range map[string]bool{"prod": true, "second": true, "third": true} {
		targetConverged(t, a.App, target, first)
	}
	// prod is where the daemon's own credentials are, which STS tells; of roles the configuration does.
	want := []coord.Scope{{Key: s.scope(), Weight: 3}, {Key: shared, Weight: 2}, {Key: s.source(), Weight: 1}}
	if got := a.peers.keys(); !slices.Equal(got, want) {
		t.Errorf("owned are %+v, want %+v", got, want)
	}
	a.passes.mu.Lock()
	defer a.passes.mu.Unlock()
	leases := map[*coord.Lease]int{}
	for of, l := range a.passes.loops.of {
		if of.RoleARN != "" { // prod has none, and either member may own it
			leases[l.lease]++
		}
	}
	if len(leases) != 1 || leases[a.member.Leases.Get(shared)] != 2 {
		t.Errorf("passes by two roles go by the leases %v", leases)
	}
}

// A plan that was approved goes on where another member takes over in the middle of it. What was not approved is held there as it was before.
func TestAnApprovedPlanGoesOnWithTheNextOwner(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.extra = "  apply: as-reviewed\n"
	var calls holds
	s.before = calls.see
	under := calls.on("CreateLaunchTemplateVersion", "")
	defer under.release()
	write := func(instanceType, message string) string {
		s.repo.Write(overlay(map[string]string{"web": pool("web", instanceType, 3), "api": pool("api", "m5.large", 3)}))
		return s.repo.Commit(message)
	}
	approve := func(m *member, revision string) {
		t.Helper()
		var digest string
		eventually(t, "the plan", func() string {
			r, _ := m.current.Targets.Find("prod")
			if r.Last == nil || r.Last.Revision != revision || r.Last.Plan == nil || r.Last.Plan.Empty() {
				return fmt.Sprintf("%+v", r.Last)
			}
			digest = r.Last.Plan.Digest()
			return ""
		})
		if _, err := m.recorder.Approve(digest, "somebody"); err != nil {
			t.Fatal(err)
		}
	}
	first := write("m5.large", "first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	approve(a, first)
	converged(t, b.App, first, 2)

	s.aws.ResetCalls()
	second := write("m6i.large", "second")
	approve(a, second)
	<-under.came
	s.query("autoscaling", "UpdateAutoScalingGroup&AutoScalingGroupName=api&MaxSize=9") // by hand: nobody approved that it is put right
	s.drain(t, a, b, under)
	eventually(t, "what was approved, and what is held", func() string {
		r, _ := a.current.Targets.Find("prod")
		if r.Last == nil || r.Last.Revision != second || r.Last.Plan == nil || len(r.Last.Pools) != 2 {
			return fmt.Sprintf("%+v", r.Last)
		}
		for _, p := range r.Last.Pools {
			if p.Name == "web" && !p.Converged {
				return fmt.Sprintf("%+v", p)
			}
		}
		if r.Last.Plan.Empty() || r.Last.Plan.Runnable() > 0 {
			return fmt.Sprintf("%d steps, %d of which may run", len(r.Last.Plan.Steps), r.Last.Plan.Runnable())
		}
		return ""
	})
	if got, want := s.writes(), []string{"UpdateAutoScalingGroup", "CreateLaunchTemplateVersion", "StartInstanceRefresh", "ModifyLaunchTemplate"}; !slices.Equal(got, want) {
		t.Errorf("written: %v, want %v, of which the first is by hand", got, want)
	}
	if got := s.query("autoscaling", "DescribeAutoScalingGroups"); !strings.Contains(got, "<MaxSize>9</MaxSize>") {
		t.Error("what nobody approved was put right")
	}
}

// Whose clock is wrong is shown by the others. It keeps nobody from working: leases do not go by the time of day.
func TestClocksApartAreShown(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a := s.member("a")
	defer a.stop()
	clock := coordtest.NewClock()
	clock.SetWall(time.Hour)
	s.engine, s.name = coord.New(s.store, coord.Options{Clock: clock}), "b"
	app, stop := s.startConfig(s.settings("b"), nil)
	defer stop()
	b := &member{app, stop}
	s.owned(s.scope(), b)
	eventually(t, "what is shown", func() string {
		var v members.View
		a.get(t, "/api/v1/members", &v)
		if far := v.Far(); len(far) == 0 || far[0].Name != "b" || far[0].Clock == nil || *far[0].Clock < 3540 || *far[0].Clock > 3660 {
			return fmt.Sprintf("%+v", v)
		}
		if page := a.get(t, "/members", nil); !strings.Contains(page, "ahead") {
			return page
		}
		if text := a.get(t, "/metrics", nil); strings.Contains(text, "\nweir_coordination_clock_difference_seconds 0\n") {
			return text
		}
		return ""
	})
	converged(t, b.App, first, 1)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := s.repo.Commit("second")
	for _, m := range []*member{a, b} {
		converged(t, m.App, second, 1)
	}
	s.told(second, "fleet/apply", "success", "")
}

// unowned is for how long nobody owned a key, at most.
type unowned struct {
	mu      sync.Mutex
	since   map[string]time.Time
	longest map[string]time.Duration
}

// watchOwners looks at the engine until stop.
func (s *several) watchOwners() (u *unowned, stop func()) {
	u = &unowned{since: map[string]time.Time{}, longest: map[string]time.Duration{}}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			for _, key := range s.keys {
				owner, now := s.ownerOf(key), time.Now()
				u.mu.Lock()
				if _, is := u.since[key]; owner == "" && !is {
					u.since[key] = now
				}
				if since, is := u.since[key]; is {
					u.longest[key] = max(u.longest[key], now.Sub(since))
				}
				if owner != "" {
					delete(u.since, key)
				}
				u.mu.Unlock()
			}
		}
	}()
	return u, sync.OnceFunc(func() { close(done); <-ended })
}

// An upgrade, one daemon after the other, leaves no gap: whatever is pushed meanwhile is applied, by owners that hand over to each other at once, and each
// commit gets each status once. Versions run beside each other, and what people said before holds.
func TestAnUpgradeLeavesNoGap(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.extra = "- {name: held, path: overlays/held, region: eu-west-1}\n"
	size := 3
	push := func() string {
		s.repo.Write(fleetOf("m5.large", "held"))
		s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", size)}))
		size++
		return s.repo.Commit(fmt.Sprint("size ", size))
	}
	commits := []string{push()}
	old := []*member{s.member("a"), s.member("b")}
	for _, m := range old {
		defer m.stop()
		converged(t, m.App, commits[0], 1)
	}
	for i, key := range s.keys {
		s.owned(key, old[i])
	}
	if _, err := old[0].recorder.Suspend(gates.Suspension{Target: "held", Reason: "incident", By: "somebody"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	gaps, stop := s.watchOwners()
	defer stop()
	s.version = "newer"
	all := slices.Clone(old)
	for i, name := range []string{"c", "d"} {
		m := s.member(name)
		defer m.stop()
		all = append(all, m)
		eventually(t, "the newer one beside the older one", func() string {
			var v members.View
			if m.get(t, "/api/v1/members", &v); len(v.Members) != 3 {
				return fmt.Sprintf("%+v", v)
			}
			return ""
		})
		commits = append(commits, push())
		for _, other := range all[i:] {
			converged(t, other.App, commits[len(commits)-1], 1)
		}
		commits = append(commits, push())
		old[i].stop() // while it is applied
		for _, other := range all[i+1:] {
			converged(t, other.App, commits[len(commits)-1], 1)
		}
	}
	stop()
	for key, longest := range gaps.longest {
		// One that is not handed over waits for the end of the lease, and three seconds.
		if longest >= coord.TTL-coord.RenewEvery {
			t.Errorf("nobody owned %s for %s", key, longest)
		}
	}
	eventually(t, "the newer ones alone", func() string {
		var v members.View
		all[3].get(t, "/api/v1/members", &v)
		if len(v.Members) != 2 || v.Members[0].Version != "newer" || v.Members[1].Version != "newer" || len(v.Unowned()) > 0 {
			return fmt.Sprintf("%+v", v)
		}
		return ""
	})
	if r := all[3].recorder.Read(); r.Lost != nil || len(r.Suspensions) != 1 {
		t.Errorf("the records: %+v", r)
	}
	s.told(commits[len(commits)-1], "fleet/apply", "success", "")
	s.eachStatusOnce()
	for _, op := range []string{"CreateAutoScalingGroup", "CreateLaunchTemplate"} {
		if n := s.aws.CallCounts()[map[bool]string{true: "autoscaling:", false: "ec2:"}[strings.HasSuffix(op, "Group")]+op]; n != 2 {
			t.Errorf("%s was called %d times for two pools", op, n)
		}
	}
}

// A table is restored from a backup, as the guide says: members only look, until a person has suspended again what must be and says so.
func TestATableIsRestored(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set: this test waits until leases end")
	}
	s := newSeveral(t)
	s.extra = "- {name: held, path: overlays/held, region: eu-west-1}\n"
	table := s.table(t)
	s.giveIn(table.open(), map[string]string{s.source(): "a", s.scope(): "b"})
	s.repo.Write(fleetOf("m5.large", "held"))
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.memberOver("a", table.open()), s.memberOver("b", table.open())
	defer a.stop()
	defer b.stop()
	converged(t, b.App, first, 1)
	targetConverged(t, b.App, "held", first)
	backup, err := table.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table.name})
	if err != nil || len(backup.LastEvaluatedKey) > 0 {
		t.Fatal(err)
	}
	epoch := s.owned(s.scope(), b).Epoch
	// After the backup somebody suspends a target, and it is lost with the table.
	if _, err := a.recorder.Suspend(gates.Suspension{Target: "held", Reason: "incident", By: "somebody"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	a.stop()
	b.stop()
	if _, err := table.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table.name}); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	table.create()
	for _, i := range backup.Items {
		if _, err := table.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table.name, Item: i}); err != nil {
			t.Fatal(err)
		}
	}
	s.repo.Write(fleetOf("m6i.large", "held"))
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := s.repo.Commit("second")
	time.Sleep(time.Until(stopped.Add(coord.TTL)))

	s.aws.ResetCalls()
	a, b = s.memberOver("a", table.open()), s.memberOver("b", table.open())
	defer a.stop()
	defer b.stop()
	for _, m := range []*member{a, b} {
		eventually(t, "plans that are held", func() string {
			for _, target := range []string{"prod", "held"} {
				r, _ := m.current.Targets.Find(target)
				if r.Last == nil || r.Last.Revision != second || r.Last.Plan == nil || r.Last.Plan.Empty() || r.Last.Plan.Runnable() > 0 {
					return fmt.Sprintf("%+v", r.Last)
				}
			}
			return ""
		})
		if lost := m.recorder.Read().Lost; lost == nil {
			t.Error("it does not say that anything is lost")
		}
	}
	if now := s.owned(s.scope(), b).Epoch; now.Engine == epoch.Engine || now.N <= epoch.N {
		t.Errorf("owned in %s, before the restore in %s", now, epoch)
	}
	if wrote := s.awsWrites(); len(wrote) > 0 {
		t.Errorf("written: %v", wrote)
	}
	if _, err := a.recorder.Suspend(gates.Suspension{Target: "held", Reason: "as before", By: "somebody"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := a.recorder.AcceptLoss(); err != nil {
		t.Fatal(err)
	}
	converged(t, b.App, second, 1)
	eventually(t, "the target that is suspended again", func() string {
		r, _ := b.current.Targets.Find("held")
		if r.Last == nil || !r.Last.Suspended || r.Last.Plan == nil || r.Last.Plan.Runnable() > 0 || r.Last.Plan.Empty() {
			return fmt.Sprintf("%+v", r.Last)
		}
		return ""
	})
	if wrote := s.awsWrites(); !slices.Equal(wrote, []string{"CreateOrUpdateTags", "UpdateAutoScalingGroup"}) {
		t.Errorf("written: %v", wrote)
	}
}
