package commits

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/statustest"
)

// A forge that hangs may take a write long after nobody waits for it any more, and then
// shows that one: the newest is what it took last.
func TestAWriteThatIsTakenLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, hung := statustest.NewForge(), false
		f.FailWith(func(sha string, s forge.CommitStatus) error {
			if hung || s.Context != "weir/apply" {
				return nil
			}
			hung = true
			go func() {
				time.Sleep(40 * time.Second)
				_ = f.SetStatus(t.Context(), sha, s)
			}()
			return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "context deadline exceeded"}
		})
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		time.Sleep(time.Second)
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply": "success: prod: nothing to change in AWS", "weir/apply/prod": "success: nothing to change in AWS",
		})
		want := []string{
			"4be91a7 weir/apply/prod pending: planning", "4be91a7 weir/apply pending: prod: planning",
			"4be91a7 weir/apply success: prod: nothing to change in AWS", "4be91a7 weir/apply/prod success: nothing to change in AWS",
			"4be91a7 weir/apply pending: prod: planning", // late
			"4be91a7 weir/apply success: prod: nothing to change in AWS",
		}
		if diff := cmp.Diff(want, f.Log()); diff != "" {
			t.Errorf("posted (-want +got):\n%s", diff)
		}
	})
}

// A stop that ends a write leaves nothing for the next start once the last status was
// written, although that one may yet be taken late: that is read again then.
func TestAStopWhileAStatusIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir, hung := statustest.NewForge(), t.TempDir(), make(chan struct{})
		var once sync.Once
		f.FailWith(func(string, forge.CommitStatus) (err error) {
			once.Do(func() {
				<-hung
				err = &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "context canceled"}
			})
			return err
		})
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		synctest.Wait()
		time.AfterFunc(time.Millisecond, func() { close(hung) })
		p.kill()
		last, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := p.Close(last); err != nil {
			t.Error(err)
		}
		if n := p.Pending(); n != 1 {
			t.Errorf("%d contexts are to be read again", n)
		}
	})
}

// A process that is killed while it writes leaves a write that the forge may take late,
// after the next process has written the last word.
func TestAKilledProcessLeavesALateWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir, hung := statustest.NewForge(), t.TempDir(), false
		f.FailWith(func(sha string, s forge.CommitStatus) error {
			if hung || s.Context != "weir/apply" {
				return nil
			}
			hung = true
			go func() {
				time.Sleep(40 * time.Second)
				_ = f.SetStatus(t.Context(), sha, s)
			}()
			return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "context canceled"}
		})
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		synctest.Wait()
		p.kill()
		p = start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply": "success: prod: nothing to change in AWS", "weir/apply/prod": "success: nothing to change in AWS",
		})
		if n := p.Pending(); n != 0 {
			t.Errorf("%d contexts wait", n)
		}
	})
}

// answering is a forge that takes a second for each status, unless nobody waits any more.
type answering struct {
	*statustest.Forge
	began chan struct{}
}

func (a answering) SetStatus(ctx context.Context, sha string, s forge.CommitStatus) error {
	select {
	case a.began <- struct{}{}:
	default:
	}
	select {
	case <-time.After(time.Second):
		return a.Forge.SetStatus(ctx, sha, s)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A write that is under way as weir stops has its answer, so that nothing of it is in doubt.
func TestAStopLetsAWriteHaveItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := answering{statustest.NewForge(), make(chan struct{}, 1)}
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		<-f.began
		began := time.Now()
		if err := p.stop(t); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it stopped after %s", took)
		}
		if n := p.Pending(); n != 0 {
			t.Errorf("%d contexts are to be read again", n)
		}
	})
}
