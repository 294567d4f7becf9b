package app

import (
	"context"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/coord"
)

// A pass that AWS leaves without an answer for fifteen seconds is no progress with its account and region: after two minutes of that another member has it.
func TestAPassThatHangsIsNoProgress(t *testing.T) {
	t.Parallel()
	const place, other = "scope/aws/111111111111/eu-west-1", "scope/aws/222222222222/eu-west-1"
	key := reconciler.ScopeKey{Account: "111111111111", Region: "eu-west-1"}
	began, end := make(chan struct{}), make(chan struct{})
	l := &loop{key: key, lease: &coord.Lease{Owner: coord.Owner{Key: place}}}
	l.Loop = &reconciler.Loop{Desired: func(context.Context) (reconciler.Batch, error) {
		close(began)
		<-end
		return reconciler.Batch{}, nil
	}, Interval: time.Hour}
	p := &passes{passesOptions: passesOptions{accounts: accounts.New(accounts.Options{})}, loops: loops{of: map[reconciler.ScopeKey]*loop{key: l}}}
	goes := func(what, place string, after time.Duration, want bool) {
		t.Helper()
		if got := p.progresses(place, time.Now().Add(after)); got != want {
			t.Errorf("%s: progress %t", what, got)
		}
	}
	goes("no pass is under way", place, time.Hour, true)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = l.Run(ctx) }()
	<-began
	goes("a pass has just begun", place, 0, true)
	goes("for 14 s", place, 14*time.Second, true)
	goes("for 16 s", place, 16*time.Second, false)
	goes("for 16 s elsewhere", other, 16*time.Second, true)
	stop()
	close(end)
	<-ended
}
