package follow

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
)

// TestASlowSourceHoldsUpItsOwnTargetsOnly and not every pass.
func TestASlowSourceHoldsUpItsOwnTargetsOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		heard int
		wait  time.Duration
	}{
		"none has spoken": {0, FirstSource}, "one has spoken": {1, OtherSources}, "both have": {2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all, asked := Sources{}, time.Now()
				for i := range 2 {
					f := &Source{heard: make(chan struct{}), view: fleet.View{ID: fmt.Sprint(i)}}
					if i < tc.heard {
						close(f.heard)
					}
					all[fmt.Sprint(i)] = f
				}
				for _, want := range []time.Duration{tc.wait, 0} {
					began := time.Now()
					views, err := all.Views(t.Context(), asked, nil)
					if took := time.Since(began); err != nil || len(views) != 2 || took != want {
						t.Errorf("%d views after %s, want %s: %v", len(views), took, want, err)
					}
				}
			})
		})
	}
}
