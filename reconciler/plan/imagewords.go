package plan

import (
	"github.com/weir-gitops/weir/reconciler/step"
)

// ImageChanges calls each with every change of an image in the plan.
func (p *Plan) ImageChanges(each func(*step.Change)) {
	for i := range p.Steps {
		for j := range p.Steps[i].Changes {
			ch := &p.Steps[i].Changes[j]
			if n := len(ch.Path); n > 1 && ch.Path[n-2] == "ami" && ch.Path[n-1] == "id" {
				each(ch)
			}
		}
	}
}
