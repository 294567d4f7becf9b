package app

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/workload"
)

// The next owner of an account shows a step that AWS refused the previous one, and tries it only when somebody asks any member for it, and then once.
func TestWhatAWSRefusedIsNotTriedByTheNextOwner(t *testing.T) {
	t.Parallel()
	const update = "autoscaling:UpdateAutoScalingGroup"
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	converged(t, b.App, first, 1)
	s.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "UpdateAutoScalingGroup", Code: "AccessDenied", Status: 403, Times: -1})
	s.aws.ResetCalls()
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	second := s.repo.Commit("second")
	refused := func(m *member, since time.Time) {
		t.Helper()
		eventually(t, "the refusal", func() string {
			r, _ := m.current.Targets.Find("prod")
			if r.Last == nil || r.Last.Revision != second || r.Last.StartedAt.Before(since) || len(r.Last.Failures()) != 1 || !r.Last.Failures()[0].Parked {
				return fmt.Sprintf("%+v", r.Last)
			}
			return ""
		})
	}
	refused(b, time.Time{})
	refused(a, time.Time{})
	b.stop()
	s.owned(s.scope(), a)
	refused(a, time.Now())
	if n := s.aws.CallCounts()[update]; n != 1 {
		t.Errorf("it was tried %d times", n)
	}

	c := s.member("c")
	defer c.stop()
	refused(c, time.Time{})
	if _, err := c.daemon.Reconcile([]string{"prod"}, true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another try", func() string {
		if n := s.aws.CallCounts()[update]; n < 2 {
			return fmt.Sprint("tried ", n, " times")
		}
		return ""
	})
	asked := time.Now()
	refused(a, asked)
	a.requests.passAll()
	refused(a, time.Now())
	if n := s.aws.CallCounts()[update]; n != 2 {
		t.Errorf("it was tried %d times", n)
	}
}

// If somebody asks for another try while nobody owns the account, its next owner tries.
func TestARetryIsKeptUntilSomebodyOwnsTheAccount(t *testing.T) {
	t.Parallel()
	const update = "autoscaling:UpdateAutoScalingGroup"
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	converged(t, b.App, first, 1)
	converged(t, a.App, first, 1)
	remove := s.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "UpdateAutoScalingGroup", Code: "AccessDenied", Status: 403, Times: -1})
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	second := s.repo.Commit("second")
	eventually(t, "the refusal", func() string {
		if r, _ := a.current.Targets.Find("prod"); r.Last == nil || r.Last.Revision != second || len(r.Last.Failures()) != 1 {
			return fmt.Sprintf("%+v", r.Last)
		}
		return ""
	})
	defer b.stop()
	defer a.stop()
	remove()
	s.aws.ResetCalls()
	// Nobody may write meanwhile.
	ctx := t.Context()
	if err := b.member.Keeper.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.member.Keeper.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := b.daemon.Reconcile([]string{"prod"}, true); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * coord.PollEvery) // each member has read that by now
	if n := s.aws.CallCounts()[update]; n != 0 {
		t.Fatalf("it was tried %d times", n)
	}
	if err := a.member.Keeper.Undrain(ctx); err != nil {
		t.Fatal(err)
	}
	converged(t, a.App, second, 1)
	if n := s.aws.CallCounts()[update]; n != 1 {
		t.Errorf("it was tried %d times", n)
	}
}

// secrets is a workload cluster that counts what is written to it.
type secrets struct {
	jointoken.Cluster
	wrote    int
	deadline bool
}

func (c *secrets) CreateSecret(ctx context.Context, s workload.Secret) (workload.Secret, error) {
	c.wrote++
	_, c.deadline = ctx.Deadline()
	return s, nil
}

func (c *secrets) DeleteSecret(context.Context, string, string, string) error { c.wrote++; return nil }

// Only the owner of an account writes the Secrets of its workload clusters.
func TestSecretsAreWrittenByTheOwnerAlone(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	converged(t, a.App, first, 1)
	converged(t, b.App, first, 1)
	var cluster secrets
	write := func(m *member) (failed int) {
		t.Helper()
		var d reconciler.Desired
		func() {
			m.passes.handing.Lock()
			defer m.passes.handing.Unlock()
			m.passes.mu.Lock()
			var key reconciler.ScopeKey
			var was reconciler.Batch
			for key, was = range m.passes.memory.batches {
				b := was
				b.Targets = slices.Clone(b.Targets)
				b.Targets[0].Tokens = &cluster
				m.passes.memory.batches[key] = b
			}
			m.passes.mu.Unlock()
			// A pass whose lease went to another member meanwhile is under way on one of them.
			d = m.passes.gated(&loop{Loop: &reconciler.Loop{}, key: key, lease: &coord.Lease{}}, accounts.Access{Account: "000000000000"}).Targets[0]
			m.passes.mu.Lock()
			m.passes.memory.batches[key] = was
			m.passes.mu.Unlock()
		}()
		if _, err := d.Tokens.CreateSecret(t.Context(), workload.Secret{}); err != nil {
			failed++
		}
		if err := d.Tokens.DeleteSecret(t.Context(), "kube-system", "bootstrap-token-x", "uid"); err != nil {
			failed++
		}
		return failed
	}
	if failed := write(b); failed != 0 || cluster.wrote != 2 || !cluster.deadline {
		t.Errorf("the owner: %d failed, %d written, bounded %t", failed, cluster.wrote, cluster.deadline)
	}
	if failed := write(a); failed != 2 || cluster.wrote != 2 {
		t.Errorf("another member: %d failed, %d written", failed, cluster.wrote)
	}
}
