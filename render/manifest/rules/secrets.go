package rules

import (
	"fmt"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
	"go.yaml.in/yaml/v3"
)

// eachScalar visits the keys and values below a node.
func eachScalar(n *yaml.Node, p intent.Path, visit func(p intent.Path, value string, key bool)) {
	switch n.Kind {
	case yaml.ScalarNode:
		visit(p, n.Value, false)
	case yaml.SequenceNode:
		for i, c := range n.Content {
			eachScalar(c, p.Join(intent.Index(i)), visit)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := p.Join(n.Content[i].Value)
			visit(at, n.Content[i].Value, true)
			eachScalar(n.Content[i+1], at, visit)
		}
	}
}

// SecretValues returns the values of the Secrets in a build, and the tokens and passwords of its
// KubeadmConfigs. They must not be shown, whatever their source. It omits common words, because masking them
// would make texts unreadable. It also omits ${NAME}, which stands for a variable without a value: masking it
// would hide the name of the variable in the hint.
func SecretValues(objects []kinds.Object) []string {
	var out []string
	add := func(v string) {
		if !secret.Word(v) && !reference.MatchString(v) {
			out = append(out, v)
		}
	}
	for _, o := range objects {
		switch {
		case o.Ref.Kind == "Secret" && o.Ref.APIVersion == "v1":
			eachScalar(o.Node, nil, func(p intent.Path, value string, key bool) {
				if key || len(p) < 2 {
					return
				}
				switch p[0] {
				case "stringData":
					add(value)
				case "data":
					if plain, err := kinds.DecodeBase64(value); err == nil {
						add(plain)
					}
				}
			})
		case o.Ref.Kind == "KubeadmConfig":
			eachScalar(o.Node, nil, func(p intent.Path, value string, key bool) {
				switch p[len(p)-1] {
				case "token", "tlsBootstrapToken", "passwd":
					if !key {
						add(value)
					}
				}
			})
		}
	}
	return out
}

// reference matches a variable that substitution left because it has no value.
var reference = lazyregexp.New(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

// Ciphertext reports user data that contains text encrypted by SOPS. Its file had no metadata for decryption,
// so no node could use the user data.
func Ciphertext(set *intent.Set) []kinds.Fault {
	var out []kinds.Fault
	for i := range set.Pools {
		p := &set.Pools[i]
		if p.LaunchTemplate == nil || !sops.Mentioned(p.LaunchTemplate.UserData.Text) {
			continue
		}
		ref := p.Bootstrap
		if ref.Kind == "" {
			ref = p.MachinePool
		}
		out = append(out, kinds.Fault{
			Severity: diag.Error, Code: "sops-ciphertext", Ref: ref, Path: path("spec"),
			Summary: fmt.Sprintf("the user data of %s has text that is still encrypted by SOPS", p.Key),
			Detail:  "Its file is missing the metadata of SOPS. Encrypt the whole file with sops.",
			Related: []kinds.RelatedField{{Ref: p.MachinePool, Path: kinds.BootstrapPath, Message: "the pool that would get it"}},
		})
	}
	return out
}
