package accounts

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
)

// A scope that is opened ahead is open for who asks next. What could not be opened is told
// once, without another call, and then tried again.
func TestAhead(t *testing.T) {
	s, url := embedded(t)
	key := reconciler.ScopeKey{Region: "eu-west-1", Endpoint: url}
	s.Ahead(t.Context(), key, "weir")
	if x := s.Open(t.Context(), key); x.Err != nil || x.Account != "000000000000" || s.Opened() != 1 {
		t.Errorf("opened %+v", x)
	}
	s.Ahead(t.Context(), reconciler.ScopeKey{}, "weir") // is nowhere

	var calls atomic.Int64
	shut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(shut.Close)
	key.Endpoint = shut.URL
	s.Ahead(t.Context(), key, "weir")
	failed := func() bool {
		s.mu.Lock()
		have := s.open[key]
		s.mu.Unlock()
		if have == nil {
			return false
		}
		have.turn <- struct{}{}
		defer func() { <-have.turn }()
		return have.failed != nil
	}
	for range 1000 {
		if failed() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	before := calls.Load()
	if x := s.Open(t.Context(), key); x.Err == nil || calls.Load() != before {
		t.Errorf("%v after %d more calls", x.Err, calls.Load()-before)
	}
	if x := s.Open(t.Context(), key); x.Err == nil || calls.Load() == before {
		t.Errorf("%v, and it was not tried again", x.Err)
	}
}
