package nodegroup

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
)

// replaceChanges returns the differences between a replacement and the old nodegroup: first the
// fields that require the replacement, then all other fields of a creation. So every value that the
// creation request sends is shown.
func (w wantNodegroup) replaceChanges(old, ng observed.Nodegroup, differs []immutable) []step.Change {
	changes := sizeChanges(w.pool, old, ng.MinSize, ng.MaxSize, ng.DesiredSize)
	for _, d := range differs {
		changes = append(changes, step.Change{Field: d.field, From: model.OrNil(d.from), To: model.OrNil(d.to), Object: d.object, Path: d.path})
	}
	if w.hasTemplate && !w.version.Resolves(old.Template) {
		changes = append(changes, template.VersionChanges(w.pool, old.Template, w.version)...)
	}
	if ng.ReleaseVersion != "" { // also an unchanged one, as EKS would otherwise take the newest
		changes = append(changes, model.InfraChange(w.pool, "amiVersion", model.OrNil(old.ReleaseVersion), ng.ReleaseVersion))
	}
	w.hasTemplate = false // shown above
	before, after := creationChanges(w, w.comparable(old, ng)), creationChanges(w, w.comparable(ng, ng))
	before, after = append(before, model.TagChanges(w.pool, old.Tags, nil, nil)...), append(after, model.TagChanges(w.pool, ng.Tags, nil, nil)...)
	listed := func(field string) bool {
		switch field {
		case "scaling.minSize", "scaling.maxSize", "replicas", "amiVersion":
			return true
		}
		return slices.ContainsFunc(changes, func(ch step.Change) bool {
			return ch.Field == field || ch.Field == "nodegroup.instanceTypes" && field == "instanceType"
		})
	}
	for _, ch := range append(after, before...) {
		field := ch.Field
		if listed(field) || ownRecord(field) {
			continue
		}
		if ch.From, ch.To = valueOf(before, field), valueOf(after, field); field == "updateConfig" {
			ch.From, ch.To = updateText(old.UpdateConfig), updateText(ng.UpdateConfig)
		}
		if !reflect.DeepEqual(ch.From, ch.To) {
			changes = append(changes, ch)
		}
	}
	return changes
}

func valueOf(changes []step.Change, field string) any {
	i := slices.IndexFunc(changes, func(ch step.Change) bool { return ch.Field == field })
	if i < 0 {
		return nil
	}
	return changes[i].To
}

// ownRecord reports whether the field is a tag that derives from other tags, or that AWS sets.
func ownRecord(field string) bool {
	p := model.FieldPath(field)
	return len(p) == 2 && p[0] == "tags" && (p[1] == observed.TagKeys || strings.HasPrefix(p[1], "aws:"))
}

// EKS's defaults for a nodegroup (API reference, CreateNodegroup).
// Assumed of AWS: nodegroup-defaults.
const (
	usualDisk         = 20 // GiB
	usualWindowsDisk  = 50
	usualInstanceType = "t3.medium"
	usualUpdates      = "DEFAULT"
)

// comparable returns n, an existing nodegroup or ng itself, with defaults for the values that ng
// does not set, so that it compares with ng.
func (w wantNodegroup) comparable(n, ng observed.Nodegroup) observed.Nodegroup {
	if n.UpdateConfig.UpdateStrategy == usualUpdates {
		n.UpdateConfig.UpdateStrategy = ""
	}
	n.WarmPool = withoutBound(n.WarmPool)
	for _, m := range w.changeable() {
		v := m.Of(&n.NodegroupSettings)
		v.Set(m.Complete(v))
	}
	if accessText(n.RemoteAccess) == "" {
		n.RemoteAccess = nil
	}
	if w.hasImage { // the image decides these
		n.AMIType, n.Version = "", ""
	} else {
		n.Version = cmp.Or(n.Version, w.cluster.Version)
	}
	if ng.Template.Name != "" {
		// If the nodegroup does not set these, the template decides them.
		n.DiskSize, n.RemoteAccess = 0, nil
		return n
	}
	if len(n.InstanceTypes) == 0 {
		n.InstanceTypes = []string{usualInstanceType}
	}
	if n.DiskSize == 0 {
		n.DiskSize = usualDisk
		if strings.HasPrefix(n.AMIType, "WINDOWS") {
			n.DiskSize = usualWindowsDisk
		}
	}
	return n
}
