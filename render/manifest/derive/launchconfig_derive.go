package derive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// configKey has the properties that pools with the same EC2 launch template share. All other differences,
// such as the Kubernetes version, tags and bootstrap configuration, result in another version of the same
// template.
type configKey struct {
	Cluster intent.Key
	Source  intent.ObjectRef
	Kind    intent.PoolKind
}

// derivedConfig is an AWSLaunchConfig and the first pool that uses it.
type derivedConfig struct {
	key   configKey
	first intent.ObjectRef
}

// templateKinds are the suffixes of launch template names, by kind of pool. A group and a nodegroup cannot
// use the same template.
var templateKinds = map[intent.PoolKind]string{intent.GroupPool: "group", intent.NodegroupPool: "nodegroup"}

// shares reports whether the pool uses a shared launch template.
func (l *launchConfigs) shares(d *draft) bool { return l != nil && l.uses[d.Infrastructure] != nil }

// name sets the pool's LaunchConfig and returns the launch template's name. It is the name of a written
// AWSLaunchConfig, or a name made from the key.
func (l *launchConfigs) name(d *draft) string {
	u := l.uses[d.Infrastructure]
	key := configKey{Cluster: d.ClusterKey, Source: u.config.Source, Kind: d.Kind}
	name := u.config.Source.Name
	if u.config.Source.Kind == kinds.KindLaunchConfigTemplate {
		name = derivedName(d.ClusterKey.Name + "-" + name + "-" + templateKinds[d.Kind])
	}
	c := u.config
	c.Key = intent.Key{Namespace: u.config.Source.Namespace, Name: name}
	d.LaunchConfig = &c
	at := path("spec", "launchConfigRef")
	id := "launch template " + name
	if other, taken := l.claims.awsNames[id]; taken && other.ref != c.Source {
		d.Faults.Add(kinds.Fault{Code: "name-taken", Summary: fmt.Sprintf("%s and %s both want the launch template %q", other.pool, c.Source, name),
			Detail: "AWS allows only one with that name in an account and region", Ref: d.Infrastructure, Path: at,
			Related: []kinds.RelatedField{{Ref: other.ref, Path: other.path, Message: "the other one"}}})
		return name
	}
	l.claims.awsNames[id] = claim{c.Source, c.Source, path("metadata", "name")}
	switch first := l.derived[name]; {
	case first == nil:
		l.derived[name] = &derivedConfig{key: key, first: d.Infrastructure}
	case first.key != key:
		d.Faults.Add(kinds.Fault{Code: "launch-config-differs", Summary: fmt.Sprintf("%s and %s cannot share %s: they differ in their %s", first.first, d.Infrastructure, c.Source, key.differences(first.key)),
			Detail: "an AWSLaunchConfig is one launch template; make it an AWSLaunchConfigTemplate, which gives each cluster and kind its own", Ref: d.Infrastructure, Path: at,
			Related: []kinds.RelatedField{{Ref: first.first, Path: at, Message: "the other reference"}}})
	}
	return name
}

// differences returns the names of the parts in which two keys differ.
func (k configKey) differences(o configKey) string {
	var out []string
	if k.Cluster != o.Cluster {
		out = append(out, "cluster")
	}
	if k.Kind != o.Kind {
		out = append(out, "kind")
	}
	return strings.Join(out, " and ")
}

var notInTemplateName = lazyregexp.New(`[^a-zA-Z0-9().\-/_]`)

// derivedName returns a name that EC2 accepts. A name that had to be changed ends in a hash of the original.
func derivedName(name string) string {
	fits := notInTemplateName.ReplaceAllString(name, "-")
	if fits == name && len(name) <= kinds.MaxTemplateName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := "-" + hex.EncodeToString(sum[:4])
	return fits[:min(len(fits), kinds.MaxTemplateName-len(hash))] + hash
}

// moveFaults moves faults about fields of a shared launch template from the pools to the object that has the
// fields, and removes duplicates.
func (l *launchConfigs) moveFaults(to *kinds.Faults) {
	if len(l.uses) == 0 {
		return
	}
	of := map[intent.ObjectRef]intent.ObjectRef{} // by the infrastructure object and by the MachinePool
	for infra := range l.uses {
		of[infra] = infra
		if mp, ok := l.claims.used[infra]; ok {
			of[mp] = infra
		}
	}
	move := func(ref *intent.ObjectRef, p *intent.Path) {
		if u := l.uses[*ref]; u != nil {
			if at, ok := u.config.Field(*p); ok {
				*ref, *p = u.config.Source, at
			}
		}
	}
	seen := map[string]bool{}
	var out []kinds.Fault
	for _, f := range to.List {
		if infra, ok := of[f.Ref]; ok {
			u := l.uses[infra]
			spec := u.config.Spec().String()
			words := strings.NewReplacer("spec.awsLaunchTemplate.ami.id in "+infra.String(), spec+".ami.id in "+u.config.Source.String(),
				"spec.awsLaunchTemplate.", spec+".", "spec.awsLaunchTemplate", "spec.launchConfigRef")
			f.Summary, f.Detail = words.Replace(f.Summary), words.Replace(f.Detail)
			move(&f.Ref, &f.Path)
			f.Related = slices.Clone(f.Related)
			for i := range f.Related {
				move(&f.Related[i].Ref, &f.Related[i].Path)
			}
		}
		id := string(jsonOf([]any{f.Severity, f.Code, f.Ref, f.Path, f.Summary}))
		if !kinds.IsLaunchConfig(f.Ref.Kind) && f.Ref.Kind != "PoolOptions" || !seen[id] {
			out = append(out, f)
		}
		seen[id] = true
	}
	to.List = out
}

// jsonOf encodes values that contain only strings, numbers and booleans.
func jsonOf(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic("manifest: " + err.Error())
	}
	return out
}
