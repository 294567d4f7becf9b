package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/nearest"
)

// checkAnnotations reports weir's annotations that are misspelled, that this version does not support, or
// that have no effect on their object.
func checkAnnotations(a kinds.Annotated, pool bool) {
	known := []string{kinds.AnnotationPrune, kinds.AnnotationDelete, kinds.AnnotationKeepVersions, kinds.AnnotationAMIPolicy, kinds.AnnotationAdopt, kinds.AnnotationReplace, kinds.AnnotationImageFamily}
	coming := []string{kinds.AnnotationArchitecture}
	for _, key := range slices.Sorted(maps.Keys(a.Meta.Annotations)) {
		if !strings.HasPrefix(key, kinds.GroupWeir+"/") {
			continue
		}
		at := kinds.AnnotationPath(key)
		switch {
		case key == kinds.AnnotationArchitecture && kinds.BringsTemplate(a.Meta) && pool && a.Ref.Kind != "MachinePool":
			// checkOwnKeys reports that one excludes the other
		case slices.Contains(coming, key):
			a.Unsupported(at, "annotation "+key, "")
		case !slices.Contains(known, key):
			detail := "weir reads " + strings.Join(known, ", ")
			if near := nearest.Word(key, known); near != "" {
				detail = fmt.Sprintf("did you mean %q?", near)
			}
			a.To.Add(kinds.Fault{Code: "unknown-annotation", Summary: "unknown annotation " + key, Detail: detail, Ref: a.Ref, Path: at, Key: true})
		case !pool:
			a.Warn(at, "annotation-not-read", fmt.Sprintf("annotation %s is not read on a %s", key, a.Ref.Kind), "write it on the infrastructure pool or the MachinePool")
		}
	}
}
