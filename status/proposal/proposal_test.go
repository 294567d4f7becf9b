package proposal

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

func TestWait(t *testing.T) {
	missing := &forgehttp.Error{Status: http.StatusNotFound, Fault: forgehttp.FaultMissing}
	for name, tt := range map[string]struct {
		err    error
		tries  int
		want   time.Duration
		mayNot bool
	}{
		"a branch that the forge does not know yet": {missing, 1, 2 * time.Second, false},
		"once more":               {missing, 2, 4 * time.Second, false},
		"it stays unknown":        {missing, 4, 30 * time.Second, false},
		"the forge is busy":       {&forgehttp.Error{Status: http.StatusBadGateway, Fault: forgehttp.FaultBusy}, 1, 30 * time.Second, false},
		"it says when":            {&forgehttp.Error{Status: http.StatusTooManyRequests, Fault: forgehttp.FaultBusy, After: time.Minute}, 1, time.Minute, false},
		"the token may not":       {&forgehttp.Error{Status: http.StatusForbidden, Fault: forgehttp.FaultDenied}, 1, 10 * time.Minute, true},
		"a hidden repository":     {&forgehttp.Error{Status: http.StatusNotFound, Fault: forgehttp.FaultDenied}, 1, 10 * time.Minute, true},
		"something else happened": {errors.New("disk full"), 1, 30 * time.Second, false},
	} {
		if wait, mayNot := Wait(tt.err, tt.tries); wait != tt.want || mayNot != tt.mayNot {
			t.Errorf("%s: %s, %t, want %s, %t", name, wait, mayNot, tt.want, tt.mayNot)
		}
	}
}
