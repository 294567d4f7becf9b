package derive

import (
	"fmt"
	"strconv"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// replicas returns a MachinePool's size by the rule of Cluster API: the written size, or the autoscaler's
// lower bound if annotations set both bounds, or 1.
func replicas(o *kinds.Decoded[kinds.MachinePoolSpec], r kinds.Reporter) intent.Number {
	if o.Spec.Replicas != nil {
		return intent.Number{Value: *o.Spec.Replicas, Written: true}
	}
	low, hasLow := o.Metadata.Annotations[kinds.AnnotationMinSize]
	_, hasHigh := o.Metadata.Annotations[kinds.AnnotationMaxSize]
	if !hasLow || !hasHigh {
		return intent.Number{Value: 1}
	}
	bounds := [2]int{}
	for i, key := range []string{kinds.AnnotationMinSize, kinds.AnnotationMaxSize} {
		n, err := strconv.ParseInt(o.Metadata.Annotations[key], 10, 32)
		if err != nil || n < 0 {
			r.Error(kinds.AnnotationPath(key), "bad-value", fmt.Sprintf("annotation %s is not a size: %q", key, o.Metadata.Annotations[key]), "")
			return intent.Number{Value: 1}
		}
		bounds[i] = int(n)
	}
	if bounds[0] > bounds[1] {
		r.Error(kinds.AnnotationPath(kinds.AnnotationMinSize), "out-of-range", fmt.Sprintf("annotation %s is %s, above the one for the maximum", kinds.AnnotationMinSize, low), "")
	}
	return intent.Number{Value: int32(bounds[0])}
}
