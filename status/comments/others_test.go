package comments

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

// TestOneWeirComments: who no longer speaks for a source writes nothing of what it wanted
// to, and when it speaks again it goes by what the comment says then.
func TestOneWeirComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := newMemoryPulls(), statustest.StoreIn(t, t.TempDir())
		var speaker atomic.Int32
		weir := func(n int32) *pullProcess {
			return startPulls(t, t.TempDir(), f, func(o *Options) {
				o.Store = store
				o.Held = func(string) state.Store {
					if speaker.Load() == n {
						return store
					}
					return nil
				}
			})
		}
		one, two := weir(0), weir(1)
		show := func(p *pullProcess, reason string) {
			p.Show(small(report.PullFailing, reason))
			time.Sleep(time.Minute)
		}
		show(one, "first")
		first := body(f)
		refuse := func(with func(string, string) error) {
			f.Mu.Lock()
			defer f.Mu.Unlock()
			f.refuse = with
		}
		refuse(func(string, string) error { return refusal(503, forgehttp.FaultBusy, "busy") })
		show(one, "of one, late")
		speaker.Store(1)
		one.Rest("fleet")
		refuse(nil)
		show(two, "second")
		second := body(f)
		time.Sleep(time.Hour)
		if got := body(f); !strings.Contains(second, "second") || got != second {
			t.Errorf("the weir that speaks said\n%s\nand then there was\n%s", second, got)
		}
		speaker.Store(0)
		two.Rest("fleet")
		if show(one, "first"); body(f) != first {
			t.Errorf("the first one says again what it said, and there is\n%s", body(f))
		}
	})
}

func body(f *memoryPulls) string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	out := ""
	for _, c := range f.comments {
		out += c.Body
	}
	return out
}
