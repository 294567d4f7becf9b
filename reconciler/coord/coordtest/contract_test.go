package coordtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

func TestContractMemory(t *testing.T) {
	coordtest.Contract(t, coordtest.Back{
		Lease:     10 * time.Second,
		Simulated: synctest.Test,
		Data: func(*testing.T) coordtest.Data {
			m := coordtest.NewMemory()
			return coordtest.Data{Store: func(coord.Clock) coord.Store { return m }, Wipe: m.Wipe, Save: m.Save}
		},
	})
}
