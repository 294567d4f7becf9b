package deploy_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/weir-gitops/weir/render/kust/worker"
)

// The memory of a unit and of a pod is enough for what Go is told to keep to and for all
// processes in which kustomize runs, whatever each takes within its own bound.
func TestMemoryHasRoomForBuilds(t *testing.T) {
	for file, c := range map[string]struct{ limit, goLimit string }{
		"systemd/weir.service":            {`(?m)^MemoryMax=(\d+)([GM])$`, `(?m)^Environment=GOMEMLIMIT=(\d+)([GM])iB$`},
		"kubernetes/base/deployment.yaml": {`(?m)^\s+limits:\n\s+memory: (\d+)([GM])i$`, `(?m)name: GOMEMLIMIT, value: (\d+)([GM])iB`},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		size := func(pattern string) int64 {
			m := regexp.MustCompile(pattern).FindSubmatch(text)
			if m == nil {
				t.Fatalf("%s says nothing that matches %s", file, pattern)
			}
			n, err := strconv.ParseInt(string(m[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << map[string]int{"M": 20, "G": 30}[string(m[2])]
		}
		if all, limit := size(c.goLimit)+worker.DefaultLimits.Sum(), size(c.limit); all > limit {
			t.Errorf("%s: the limit is %d MiB, and all together may take %d MiB", file, limit>>20, all>>20)
		}
	}
}
