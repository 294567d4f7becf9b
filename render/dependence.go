package render

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/derive"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/slot"
	"github.com/weir-gitops/weir/render/userdata"
)

// The build works with stand-ins for secrets (package standin), so no result of it depends on a secret. The
// later stages need the real texts, for user data. So weir decodes the objects twice: with the texts and with
// the stand-ins. It reports findings that both have. A finding that only the real texts have would reveal
// something about a secret. weir reports it in general words, and only once.

// decoding derives the set and the findings of a result from its objects.
type decoding struct {
	of      *Result
	secrets secrecy
	// refused are the objects whose pools are left out because of a secret.
	refused []intent.ObjectRef
	// unasked is true if pools of a proposal are missing because of errors that weir does not report.
	unasked bool
}

// secrecy finds the secrets in a build.
type secrecy struct {
	built *kust.Result
	class slot.Class
}

// intents derives the set from the objects, and returns the findings that weir may report.
func (dec *decoding) intents(make func([]kinds.Object, manifest.Options) (intent.Set, []kinds.Fault), o manifest.Options) []kinds.Fault {
	if o.AnySize = dec.secrets.built.Secretive && dec.secrets.class == slot.Proposed; o.AnySize {
		o.Judged = dec.secrets.judged
	}
	set, faults := make(dec.of.Objects, o)
	dec.of.Set = set
	var public intent.Set
	open := o
	open.AnySize = false
	if dec.secrets.built.Secretive {
		var others []kinds.Fault
		public, others = make(dec.secrets.built.Shaped(), open)
		faults = append(dec.answers(faults, others), dec.outside(public)...)
	}
	faults = append(faults, dec.guard()...)
	if len(dec.refused) > 0 { // only to list the manifests that are not planned
		refused, all := dec.refuses()
		o.Refused = refused
		if dec.of.Set, _ = make(dec.of.Objects, o); all {
			dec.of.Set.Clusters = nil
		}
	}
	if dec.unasked {
		open.Refused = o.Refused
		others, _ := make(dec.secrets.built.Shaped(), open)
		dec.restore(others)
	}
	if dec.secrets.built.Secretive {
		dec.conceal(public)
	}
	return faults
}

// judged returns the way to check the text of a Secret in a proposal. If the text mixes a secret with other
// text, errors about its form would tell the author of the other text something about the secret: for example
// its first character, or whether a number exceeds a limit. So weir checks the form only after the merge.
func (s secrecy) judged(secret intent.ObjectRef) (j derive.Judgement) {
	for _, o := range s.built.Public {
		if o.Ref != secret {
			continue
		}
		var data kinds.SecretData
		kinds.Decode(o, &kinds.Faults{}, &data)
		if text, ok := data.Value("value"); ok && s.built.Mixed(text) {
			j = derive.Judgement{Format: userdata.Detect(text), AnyForm: true}
		}
	}
	return j
}

// restore adds back the pools that only the render with secrets left out. It takes the unplanned pools from
// public, the set that was made with stand-ins. To report the reasons would reveal something about a secret.
// A mark replaces the user data of the restored pools.
func (dec *decoding) restore(public intent.Set) {
	pools := slices.Clone(dec.of.Set.Pools)
	for _, p := range public.Pools {
		key := p.Key.String()
		if dec.of.Set.Pool(key) != nil || !slices.ContainsFunc(dec.of.Set.Unplanned, func(u intent.Unplanned) bool { return u.Key == p.Key }) {
			continue
		}
		if p.LaunchTemplate != nil && p.LaunchTemplate.UserData.Text != "" {
			t := *p.LaunchTemplate
			t.UserData.Text = dec.secrets.markOf(p.Bootstrap) // stand-ins differ between processes
			p.LaunchTemplate = &t
		}
		pools = append(pools, p)
	}
	dec.of.Set.Pools, dec.of.Set.Unplanned = pools, public.Unplanned
	dec.of.Set.Sort()
}

// form reports whether a finding is about the form of a value that is entirely secret.
func (s secrecy) form(f kinds.Fault) bool {
	if f.Path.String() == "spec.template.spec.bootstrap.dataSecretName" {
		return true // mixed texts are not checked
	}
	return f.Code != "duplicate" && s.wholly(f.Ref, f.Path)
}

// conceal removes everything from the set that would reveal a secret.
func (dec *decoding) conceal(public intent.Set) {
	dec.of.Set.Ignored = slices.Clone(dec.of.Set.Ignored)
	for i, k := range dec.of.Set.Ignored {
		dec.of.Set.Ignored[i].APIVersion, dec.of.Set.Ignored[i].Kind = dec.secrets.built.Masked(k.APIVersion), dec.secrets.built.Masked(k.Kind)
	}
	dec.block(public)
	dec.mark()
}

const dataSize = "user-data-too-large"

// answers returns the findings that weir may report: findings that are the same with stand-ins, and one
// general finding in place of all other findings.
func (dec *decoding) answers(faults, public []kinds.Fault) (out []kinds.Fault) {
	same, at := map[string]bool{}, map[string]bool{}
	for _, f := range public {
		same[wordingOf(f)] = true
		at[f.Ref.String()+" "+f.Path.String()] = f.Severity == diag.Error && dec.secrets.mixed(f.Ref, f.Path)
	}
	known, reported := map[string]bool{}, false
	for _, f := range faults {
		switch known[wordingOf(f)] = true; {
		case same[wordingOf(f)]:
			out = append(out, f)
		case at[f.Ref.String()+" "+f.Path.String()]: // public has a finding for this field, which is reported instead
		case f.Code == dataSize:
			f.Summary, f.Detail, f.Related = "the user data is larger than EC2 allows", "Move files out of it, to a place from which the nodes fetch them.", nil
			out = append(out, f)
		case f.Severity == diag.Error && dec.secrets.class == slot.Proposed && !dec.secrets.form(f):
			dec.unasked = true // the finding depends on both a secret and a public text
		case f.Severity == diag.Error:
			dec.refused = append(dec.refused, f.Ref)
			if !reported {
				out = append(out, kinds.Fault{Severity: diag.Error, Code: "secret-value", Ref: f.Ref, Path: intent.Path{"spec"},
					Summary: "a secret value does not fit where it is used", Detail: "weir does not say which one, or why: that would answer questions about it. Look at the values with sops, and at the fields that take them."})
			}
			reported = true
		case f.Severity == diag.Warning && !dec.secrets.built.Mixes: // only the owner of the secret wrote the text
			rule, _ := diag.RuleOf(f.Code)
			f.Summary, f.Detail, f.Related = rule.Short, rule.Help, nil
			out = append(out, f)
		}
	}
	for _, f := range public {
		// A text that is entirely secret is checked as it is. A mixed text is checked with stand-ins.
		if f.Severity == diag.Error && !known[wordingOf(f)] && (f.Code == dataSize && dec.secrets.class == slot.Proposed || dec.secrets.mixed(f.Ref, f.Path)) {
			dec.refused = append(dec.refused, f.Ref)
			out = append(out, f)
		}
	}
	return out
}

// mixed reports whether a field contains a secret together with other text.
func (s secrecy) mixed(ref intent.ObjectRef, p intent.Path) bool {
	text, ok := s.publicText(ref, p)
	return ok && s.built.Mixed(text)
}

// wholly reports whether a field is entirely secret.
func (s secrecy) wholly(ref intent.ObjectRef, p intent.Path) bool {
	text, ok := s.publicText(ref, p)
	_, secretive := s.built.Marked(text)
	return ok && secretive && !s.built.Mixed(text)
}

// publicText returns the text of a field, with stand-ins.
func (s secrecy) publicText(ref intent.ObjectRef, p intent.Path) (text string, ok bool) {
	for _, o := range s.built.Public {
		if o.Ref != ref {
			continue
		}
		n := o.Node
		for _, e := range p {
			if n = child(n, e); n == nil {
				return "", false
			}
		}
		return n.Value, true
	}
	return "", false
}

// wordingOf returns all parts of a finding except for its position.
func wordingOf(f kinds.Fault) string {
	return fmt.Sprintf("%d %q %q %q %q %q %q", f.Severity, f.Code, f.Ref, f.Path, f.Summary, f.Detail, f.Related)
}

// outside reports fields outside of user data that weir derived from a secret. Currently no field is;
// TestUserDataDecidesNothingElse checks that.
func (dec *decoding) outside(public intent.Set) []kinds.Fault {
	for _, p := range dec.of.Set.Pools {
		other := public.Pool(p.Key.String())
		if other != nil && !reflect.DeepEqual(bare(p), bare(*other)) {
			dec.refused = append(dec.refused, p.MachinePool)
			return []kinds.Fault{{Severity: diag.Error, Code: "secret-in-plain-field", Ref: p.MachinePool, Path: intent.Path{"spec"}, Summary: "a field outside user data has a secret value", Detail: outOfField}}
		}
	}
	return nil
}

const outOfField = "Everybody who can read the account would see the secret. Remove it from the field, or do not mark it as secret. Other fields may have a secret too."

// bare returns a pool without its user data.
func bare(p intent.Pool) intent.Pool {
	p.Blocked = nil
	if p.LaunchTemplate != nil {
		template := *p.LaunchTemplate
		template.UserData = intent.UserData{}
		p.LaunchTemplate = &template
	}
	return p
}

// block keeps the reasons for blocked pools that are the same with stand-ins, and replaces all other reasons
// with general ones.
func (dec *decoding) block(public intent.Set) {
	for i := range dec.of.Set.Pools {
		p := &dec.of.Set.Pools[i]
		if len(p.Blocked) == 0 {
			continue
		}
		other := public.Pool(p.Key.String())
		p.Blocked = slices.Clone(p.Blocked)
		for j, b := range p.Blocked {
			same := func(d diag.Diagnostic) bool { return reflect.DeepEqual(d, b) }
			if other == nil || !slices.ContainsFunc(other.Blocked, same) {
				rule, _ := diag.RuleOf(b.Code)
				p.Blocked[j].Summary, p.Blocked[j].Detail, p.Blocked[j].Related = rule.Short, rule.Help, nil
			}
		}
	}
}

// misused returns the findings about secrets in places where secrets are not allowed. It
// returns one finding for each kind of place, so that the number of findings and their fields
// reveal no more than the files do.
func (dec *decoding) misused() (out []kinds.Fault) {
	told := map[kust.MisuseKind]bool{}
	for _, m := range dec.secrets.built.Misuses {
		if dec.refused = append(dec.refused, m.Ref); told[m.Kind] {
			continue
		}
		told[m.Kind] = true
		f := misuses[m.Kind]
		if f.Severity, f.Ref, f.Path, f.Key = diag.Error, m.Ref, m.Path, m.Key; m.Of != "" {
			f.Summary = fmt.Sprintf(f.Summary, m.Of)
		}
		out = append(out, f)
	}
	return out
}

var misuses = map[kust.MisuseKind]kinds.Fault{
	kust.InPlainField: {Code: "secret-in-plain-field", Summary: "a field outside the user data has a secret value", Detail: outOfField},
	kust.InName: {Code: "secret-in-name", Summary: "a name, namespace, label, annotation, reference or key is made from a secret value",
		Detail: "It would reveal the value, or a part of it. Remove the value there, or do not mark it as secret. Check all other names, too: weir reports only one."},
	kust.InHash: {Code: "secret-in-plain-field", Summary: "a field refers to %q by a name that ends in a hash over a secret value",
		Detail: "Write options: {disableNameSuffixHash: true} at the generator."},
	kust.InPart: {Code: "secret-cut", Summary: "a value contains only a part of a secret value",
		Detail: "During the build, weir replaces each secret by a placeholder, which cannot be split. Look for a replacement with a delimiter. Encrypt the part as a separate value, and use the whole value."},
}
