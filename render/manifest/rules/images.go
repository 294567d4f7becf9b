package rules

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

func CheckImageFormat(r kinds.Reporter, p intent.Path, format string) {
	for _, m := range kinds.ImageVariable.FindAllStringSubmatch(format, -1) {
		if m[1] != "BaseOS" && m[1] != "K8sVersion" {
			r.Error(p, "bad-template", fmt.Sprintf("%s names .%s", p, m[1]), "it may name .BaseOS and .K8sVersion")
		}
	}
	if rest := kinds.ImageVariable.ReplaceAllString(format, ""); strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
		r.Error(p, "bad-template", p.String()+" is not understood", "it can use {{.BaseOS}} and {{.K8sVersion}}")
	}
}
