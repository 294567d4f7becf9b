package fleet

import (
	"fmt"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/render/diag"
)

// tooManyTargets says that a path stands for more targets than its source has room
// for; found is 0 where there were too many names to count them.
func tooManyTargets(t *config.Target, limits config.Limits, found, room int) diag.Diagnostic {
	stands := fmt.Sprintf("stands for %d targets", found)
	if found == 0 {
		stands = "leads through too many directories to count its targets"
	}
	others := ""
	if n := int(limits.Targets) - room; n > 0 {
		others = fmt.Sprintf(", beside %d of other paths,", n)
	}
	return diag.Diagnostic{
		Severity: diag.Error, Code: "too-many-targets",
		Summary: fmt.Sprintf("path %s %s%s and limits.targets allows %d for each source", t.Path, stands, others, limits.Targets),
		Detail:  "None of them is changed or deleted while this is so. Take directories away, write more of targets.path out, or raise limits.targets in weir's configuration.",
	}
}
