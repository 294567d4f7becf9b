package accounts

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

type shut struct{ sdk.Fence }

func (shut) MayBegin() error { return errors.New("this weir does not own it") }

func (shut) Until() time.Time { return time.Time{} }

// Each scope has the fence that is given for it; what only reads passes it.
func TestAScopeIsWrittenToBehindItsFence(t *testing.T) {
	s, url := embedded(t)
	s.o.Fence = func(key reconciler.ScopeKey) sdk.Fence {
		if key.Region == "eu-west-1" {
			return shut{}
		}
		return nil
	}
	for region, want := range map[string]observed.ErrorKind{"eu-west-1": observed.Fenced, "eu-west-2": ""} {
		x := s.Open(t.Context(), reconciler.ScopeKey{Region: region, Endpoint: url})
		if x.Err != nil {
			t.Fatal(x.Err)
		}
		_, err := x.Scope.Cloud.Execute(t.Context(), step.DeleteGroup{Name: "gone"})
		var e *observed.Error
		if errors.As(err, &e); e == nil && want != "" || e != nil && e.Kind != want {
			t.Errorf("%s: %v", region, err)
		}
	}
}
