package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// poolPart is what a pool's own fields give to a launch template that it shares,
// beside those that the key names.
type poolPart struct {
	// LookedUp says that the image is looked up by the Kubernetes version, and
	// InstanceType for which instance type where the template names none.
	LookedUp     bool
	InstanceType string
	AMIType      string
	Ignition     string
}

func groupPart(s *AWSMachinePoolSpec) poolPart {
	p := poolPart{LookedUp: s.AWSLaunchTemplate.AMI.ID == nil}
	if m := s.MixedInstancesPolicy; p.LookedUp && s.AWSLaunchTemplate.InstanceType == "" && m != nil && len(m.Overrides) > 0 {
		p.InstanceType = m.Overrides[0].InstanceType
	}
	if s.Ignition != nil {
		p.Ignition = string(jsonOf(s.Ignition))
	}
	return p
}

func nodegroupPart(s *AWSManagedMachinePoolSpec) poolPart {
	return poolPart{AMIType: string(s.AMIType), LookedUp: managedImage(s) && s.AWSLaunchTemplate.AMI.ID == nil}
}

// configKey is what pools have in common that share an AWSLaunchConfig. It names
// everything that makes launch templates of one declaration differ, and nothing
// that a change of the declaration changes: the name stays, versions follow.
type configKey struct {
	Cluster   intent.Key
	Source    intent.ObjectRef
	Bootstrap string
	Kind      intent.PoolKind
	Tags      map[string]string
	Version   string
	Pool      poolPart
}

// differences names the parts in which two keys differ.
func (k configKey) differences(o configKey) string {
	var out []string
	for _, part := range []struct {
		name string
		same bool
	}{
		{"cluster", k.Cluster == o.Cluster}, {"bootstrap configuration", k.Bootstrap == o.Bootstrap}, {"kind", k.Kind == o.Kind},
		{"additionalTags", maps.Equal(k.Tags, o.Tags)}, {"Kubernetes version", k.Version == o.Version}, {"image, instance type or Ignition settings", k.Pool == o.Pool},
	} {
		if !part.same {
			out = append(out, part.name)
		}
	}
	return strings.Join(out, ", ")
}

// derivedConfig is an AWSLaunchConfig and the first pool that uses it.
type derivedConfig struct {
	key      configKey
	first    intent.ObjectRef
	template []byte
	text     string
}

// shares reports whether the pool shares its launch template.
func (l *launchConfigs) shares(d *draft) bool { return l != nil && l.uses[d.Infrastructure] != nil }

// name fills the pool's LaunchConfig and returns the launch template's name: that
// of an AWSLaunchConfig which is written, else one made of the key.
func (l *launchConfigs) name(d *draft) string {
	u := l.uses[d.Infrastructure]
	key := configKey{Cluster: d.ClusterKey, Source: u.config.Source, Bootstrap: bootstrapName(d), Kind: d.Kind, Tags: u.tags, Pool: u.pool}
	if u.pool.LookedUp || strings.HasPrefix(key.Bootstrap, "KubeadmConfig ") {
		key.Version = d.version.text
	}
	name := u.config.Source.Name
	if u.config.Source.Kind == kindLaunchConfigTemplate {
		sum := sha256.Sum256(jsonOf(key))
		name = derivedName(d.ClusterKey.Name+"-"+name, hex.EncodeToString(sum[:4]))
	}
	c := u.config
	c.Key = intent.Key{Namespace: u.config.Source.Namespace, Name: name}
	d.LaunchConfig = &c
	at := path("spec", "launchConfigRef")
	id := "launch template " + name
	if other, taken := l.claims.awsNames[id]; taken && other.ref != c.Source {
		d.faults.add(Fault{Code: "name-taken", Summary: fmt.Sprintf("%s and %s both want the launch template %q", other.ref, c.Source, name),
			Detail: "AWS knows one of that name in an account and region", Ref: d.Infrastructure, Path: at,
			Related: []RelatedField{{Ref: other.ref, Path: other.path, Message: "the other one"}}})
		return name
	}
	l.claims.awsNames[id] = claim{c.Source, path("metadata", "name")}
	first := l.derived[name]
	if first == nil {
		l.derived[name] = &derivedConfig{key: key, first: d.Infrastructure}
	} else if what := key.differences(first.key); what != "" {
		l.differ(d, first, "they differ in "+what)
	}
	return name
}

// differ reports a pool whose launch template would not be that of the others.
func (l *launchConfigs) differ(d *draft, first *derivedConfig, why string) {
	at := path("spec", "launchConfigRef")
	d.faults.add(Fault{Code: "launch-config-differs", Summary: fmt.Sprintf("%s and %s cannot share %s: %s", first.first, d.Infrastructure, d.LaunchConfig.Source, why),
		Detail: "an AWSLaunchConfig is one launch template; make it an AWSLaunchConfigTemplate, of which each gets its own", Ref: d.Infrastructure, Path: at,
		Related: []RelatedField{{Ref: first.first, Path: at, Message: "the other reference"}}})
}

// agree sees to it that all pools of an AWSLaunchConfig want the same of it, so
// that none of them is given what another one says.
func (l *launchConfigs) agree(d *draft) {
	if d.LaunchConfig == nil || d.LaunchTemplate == nil || d.faults.hasErrors() {
		return
	}
	first := l.derived[d.LaunchConfig.Key.Name]
	if first == nil {
		return
	}
	template, text := jsonOf(d.LaunchTemplate), d.LaunchTemplate.UserData.Text
	switch {
	case first.template == nil:
		first.template, first.text = template, text
	case string(first.template) != string(template) || first.text != text:
		l.differ(d, first, "they give it different content")
	}
}

// bootstrapName names what a pool's user data comes from.
func bootstrapName(d *draft) string {
	boot := d.machinePool.Spec.Template.Spec.Bootstrap
	switch {
	case boot.ConfigRef != nil:
		return boot.ConfigRef.Kind + " " + boot.ConfigRef.Name
	case text(boot.DataSecretName) != "":
		return "Secret " + *boot.DataSecretName
	}
	return ""
}

// maxTemplateName is the length of a launch template's name. EC2's API reference
// says 128, and EC2 itself has answered that it "must be between 3 and 125
// characters".
const maxTemplateName = 125

var notInTemplateName = regexp.MustCompile(`[^a-zA-Z0-9().\-/_]`)

// derivedName makes a name that EC2 takes. What is cut off is still in the hash.
func derivedName(name, hash string) string {
	name = notInTemplateName.ReplaceAllString(name, "-")
	return name[:min(len(name), maxTemplateName-len(hash)-1)] + "-" + hash
}

// place moves the faults of pools about the fields of a launch template that they
// share to the object that has the fields, and drops what is then said twice.
func (l *launchConfigs) place(to *faults) {
	if len(l.uses) == 0 {
		return
	}
	of := map[intent.ObjectRef]intent.ObjectRef{} // pool objects, by both of a pool's objects
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
	var out []Fault
	for _, f := range to.list {
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
		if f.Ref.Kind != kindLaunchConfig && f.Ref.Kind != kindLaunchConfigTemplate || !seen[id] {
			out = append(out, f)
		}
		seen[id] = true
	}
	to.list = out
}

// jsonOf encodes values that hold strings, numbers and booleans only.
func jsonOf(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic("manifest: " + err.Error())
	}
	return out
}
