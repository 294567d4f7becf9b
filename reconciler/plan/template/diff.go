package template

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// templateChanges lists the fields in which a version and a body differ, with the names of the
// manifest.
func templateChanges(in *model.Input, pool *intent.Pool, version observed.TemplateVersion, to intent.TemplateData) []step.Change {
	from := version.Data
	a, b := flatten(from), flatten(to)
	both := maps.Clone(a)
	maps.Copy(both, b)
	var out []step.Change
	if version.Unknown {
		out = append(out, step.Change{Field: "awsLaunchTemplate", From: "members that weir does not know"})
	}
	for _, key := range slices.Sorted(maps.Keys(both)) {
		if reflect.DeepEqual(a[key], b[key]) {
			continue
		}
		ch := step.Change{From: a[key], To: b[key], Object: pool.Infrastructure}
		if key == "UserData" {
			if content.Decoded(from.UserData) == content.Decoded(to.UserData) {
				continue // compressed by another release
			}
			ch.Field, ch.Object, ch.Path = "userData", pool.Bootstrap, intent.Path{"spec"}
			before, after := content.Decoded(from.UserData), content.Decoded(to.UserData)
			made := pool.LaunchTemplate.UserData.Mark
			ch.From, ch.To = mask(in.Policy.DigestKey, before), mask(in.Policy.DigestKey, marked(made, after))
			out = append(out, ch)
			if before != "" && made == "" && !pool.LaunchTemplate.UserData.Concealed { // names and lines could reveal the secrets
				out = append(out, partChanges(pool, before, after)...)
			}
			continue
		}
		if ch.From == nil && ch.To == true && strings.HasSuffix(key, ".Ebs.DeleteOnTermination") {
			continue // the default
		}
		below, ofOptions := templatePath(key, pool.LaunchTemplate.RootDevice)
		if ofOptions {
			ch.Object = pool.Options
		}
		ch.Path = append(intent.Path{"spec"}, below...)
		ch.Field = below.String()
		// weir puts one tag of the manifest on instances and on volumes.
		if !slices.ContainsFunc(out, func(o step.Change) bool {
			return o.Field == ch.Field && reflect.DeepEqual(o.From, ch.From) && reflect.DeepEqual(o.To, ch.To)
		}) {
			out = append(out, ch)
		}
	}
	return out
}

// templatePath returns the path below spec of the pool, or of its PoolOptions, that sets a
// flattened member.
func templatePath(key string, root bool) (at intent.Path, ofOptions bool) {
	if rest, ok := strings.CutPrefix(key, "TagSpecifications/"); ok {
		_, tag, _ := strings.Cut(rest, "/")
		return intent.Path{"additionalTags", tag}, false
	}
	member, err := intent.ParsePath(key)
	if err != nil {
		return intent.Path{"awsLaunchTemplate", key}, false
	}
	paths, ofOptions := field.TemplateFields(member, root)
	if len(paths) == 0 {
		return intent.Path{"awsLaunchTemplate"}.Join(member...), false
	}
	return paths[0], ofOptions
}

// flatten lists the leaves of template data by member path. Security groups are one leaf, also
// those of each network interface. Tags are leaves by resource type and key. So a different order
// never shows as a difference.
func flatten(d intent.TemplateData) map[string]any {
	out := map[string]any{}
	for _, spec := range d.TagSpecifications {
		for _, t := range spec.Tags {
			out["TagSpecifications/"+spec.ResourceType+"/"+t.Key] = t.Value
		}
	}
	d.TagSpecifications = nil
	if len(d.SecurityGroupIDs) > 0 {
		out["SecurityGroupIds"] = d.SecurityGroupIDs
	}
	d.SecurityGroupIDs = nil
	d.NetworkInterfaces = slices.Clone(d.NetworkInterfaces)
	for i := range d.NetworkInterfaces {
		if n := &d.NetworkInterfaces[i]; len(n.Groups) > 0 {
			out["NetworkInterfaces"+intent.Index(i)+".Groups"] = n.Groups
			n.Groups = nil
		}
	}
	var generic map[string]any
	if err := json.Unmarshal(content.Canonical(d), &generic); err != nil {
		panic("flatten template data: " + err.Error())
	}
	leaves("", generic, out)
	return out
}

// leaves collects the scalar values of a JSON value by path.
func leaves(prefix string, v any, out map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			name := k
			if prefix != "" {
				name = prefix + "." + k
			}
			leaves(name, child, out)
		}
	case []any:
		for i, child := range v {
			leaves(prefix+intent.Index(i), child, out)
		}
	default:
		out[prefix] = v
	}
}

// moveSecurityGroups moves the security groups into the network interfaces if there are any: EC2
// refuses groups of the instance together with interfaces (SecurityGroupIds of
// RequestLaunchTemplateData). An interface with groups of its own keeps them. Without any groups,
// it would get the VPC's default group.
func moveSecurityGroups(d *intent.TemplateData) {
	if len(d.NetworkInterfaces) == 0 {
		return
	}
	d.NetworkInterfaces = slices.Clone(d.NetworkInterfaces)
	for i := range d.NetworkInterfaces {
		n := &d.NetworkInterfaces[i]
		if len(n.Groups) == 0 {
			n.Groups = d.SecurityGroupIDs
			continue
		}
		n.Groups = slices.Compact(slices.Sorted(slices.Values(n.Groups)))
	}
	d.SecurityGroupIDs = nil
}

// marked returns user data with a mark of the secrets in it. So its mask never equals the mask of a
// text in which somebody guessed a secret.
func marked(mark, text string) string {
	if mark == "" {
		return text
	}
	return mark + "\x00" + text
}

// mask replaces user data in changes: equal text gives equal masks, and without the key nobody can
// test guesses of a short secret.
func mask(key []byte, text string) any {
	if text == "" {
		return nil
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return "hmac:" + hex.EncodeToString(m.Sum(nil))[:16]
}
