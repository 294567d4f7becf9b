package awsemu_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func TestConcurrentUse(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, WritesOnly: true, After: 20, Times: 5, Code: "InternalError"})
	var wg sync.WaitGroup
	for w := 0; w < 4; w++ {
		wg.Go(func() {
			for i := 0; i < 25; i++ {
				_ = createTemplate(e, fmt.Sprintf("t-%d-%d", w, i))
				templateNames(e)
				e.srv.CallCounts()
			}
		})
	}
	wg.Wait()
	if got := len(templateNames(e)); got != 95 {
		t.Errorf("templates = %d, want 95: of 100 creates five were made to fail", got)
	}
}
