package importer

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// object is a Kubernetes object.
type object = map[string]any

const (
	infrastructure = "infrastructure.cluster.x-k8s.io/v1beta2"
	controlPlane   = "controlplane.cluster.x-k8s.io/v1beta2"
	core           = "cluster.x-k8s.io/v1beta1"
)

func seconds(n int32) string { return strconv.Itoa(int(n)) + "s" }

func newObject(apiVersion, kind, name string, annotations map[string]any, spec map[string]any) object {
	meta := map[string]any{"name": name}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": meta, "spec": spec}
}

// finish contains the facts about a pool before its objects are made.
type finish struct {
	key           string
	spec, options map[string]any
	source        source
	// ownName is the name that weir gives the pool's template.
	ownName string
	version string
}

// finish makes the objects of a pool: they describe its template, or name it.
func (m *maker) finish(p Pool, f finish) Pool {
	p.Key, p.File = f.key, "pools/"+f.key+".yaml"
	named := m.named(p, f)
	if !m.owns(f.source, f.ownName) {
		return named
	}
	// The image decides the name of its root device, which is not read here. The later proof by rendering
	// decides between the two variants.
	volumes, why := m.saying(p, f, false, &named)
	if why != "" {
		if named.State == Refused {
			return p.refused("its launch configuration " + f.source.config + " cannot become a launch template: " + why)
		}
		return named.keepingTemplateBecause(why)
	}
	root, _ := m.saying(p, f, true, &volumes)
	return root
}

// saying makes the objects of a pool that describes its template. other replaces the pool if that fails.
// With root, the first volume becomes the root volume, if its device name permits it.
func (m *maker) saying(p Pool, f finish, root bool, other *Pool) (out Pool, why string) {
	f.spec, f.options = clonedMap(f.spec), clonedMap(f.options)
	p.Notes = slices.Clone(p.Notes)
	boot, why := m.owned(&p, f, root)
	if why != "" {
		return p, why
	}
	p.Template, p.Owned, p.Configuration, p.other = f.source.ref.Name, true, f.source.config, other
	p.objects = append(m.objects(p, f, nil, boot.of), boot.objects...)
	if p.secret = boot.secret; p.secret != nil {
		p.SecretFile = "secrets/" + f.key + ".yaml" // a suffix would not do, because a pool may be named web.secret
	}
	return p.done(), ""
}

// named makes the objects of a pool that names its template.
func (m *maker) named(p Pool, f finish) Pool {
	ref := f.source.ref
	annotations := map[string]any{}
	if f.source.config != "" {
		return p.refused("it launches from the launch configuration " + f.source.config)
	}
	if ref != (observed.TemplateRef{}) {
		p.Template = ref.Name
		if p.Template == "" {
			p.Template = ref.ID
			annotations["node.k8s.aws/launch-template-id"] = ref.ID
		} else {
			annotations["node.k8s.aws/launch-template-name"] = ref.Name
		}
		number := strings.TrimPrefix(ref.Version, "$")
		if number == "" {
			number = "Default"
		}
		annotations["node.k8s.aws/launch-template-version"] = number
		if ref.Alias() {
			p.Advice = append(p.Advice, "it follows the template's version $"+number+", and so does weir, which replaces machines when that moves; write a number at node.k8s.aws/launch-template-version to decide by commits")
		}
	}
	p.objects = m.objects(p, f, annotations, map[string]any{"dataSecretName": ""})
	return p.done()
}

// objects returns the objects of a pool.
func (m *maker) objects(p Pool, f finish, annotations, bootstrap map[string]any) []object {
	template := map[string]any{
		"clusterName": clusterName(m.state, p.Cluster), "bootstrap": bootstrap,
		"infrastructureRef": map[string]any{"apiVersion": infrastructure, "kind": string(p.Kind), "name": f.key},
	}
	if f.version != "" {
		template["version"] = f.version
	}
	out := []object{
		newObject(core, "MachinePool", f.key, nil, map[string]any{"clusterName": clusterName(m.state, p.Cluster), "template": map[string]any{"spec": template}}),
		newObject(infrastructure, string(p.Kind), f.key, annotations, f.spec),
	}
	if len(f.options) > 0 {
		options := clonedMap(f.options)
		options["poolRef"] = map[string]any{"kind": string(p.Kind), "name": f.key}
		out = append(out, newObject("weir.dev/v1alpha1", "PoolOptions", f.key, nil, options))
	}
	return out
}

// Files returns the files of the pools that are not refused, of their clusters, and a kustomization, by
// path. The kustomization includes the files of Secrets. Their contents are in Secrets.
func Files(s observed.State, pools []Pool) (map[string][]byte, error) {
	out := map[string][]byte{}
	clusters := map[string]string{}
	resources := []string{}
	for i := range pools {
		p := &pools[i]
		if p.State == Refused {
			continue
		}
		name := clusterName(s, p.Cluster)
		if other, ok := clusters[name]; ok && other != p.Cluster {
			return nil, fmt.Errorf("the clusters %s and %s would have the same name in manifests: import them into directories of their own, with --cluster", other, p.Cluster)
		}
		clusters[name] = p.Cluster
		var err error
		if out[p.File], err = encode(p.objects, comment(p)); err != nil {
			return nil, err
		}
		resources = append(resources, p.File)
		if p.secret != nil {
			resources = append(resources, p.SecretFile)
		}
	}
	nodes := commonGroups(pools)
	var objects []object
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		objects = append(objects, clusterObjects(s, name, clusters[name], nodes[clusters[name]])...)
	}
	var err error
	if out["clusters.yaml"], err = encode(objects, ""); err != nil {
		return nil, err
	}
	resources = append([]string{"clusters.yaml"}, resources...)
	out["kustomization.yaml"], err = encode([]object{{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}}, "")
	return out, err
}

// Secrets returns the Secrets of pools that are not refused, by the paths of their files.
func Secrets(pools []Pool) map[string]Secret {
	out := map[string]Secret{}
	for i := range pools {
		if p := &pools[i]; p.State != Refused && p.secret != nil {
			out[p.SecretFile] = *p.secret
		}
	}
	return out
}

// Plain returns the unencrypted file of a Secret.
func (s Secret) Plain() ([]byte, error) {
	data := map[string]any{}
	for k, v := range s.Values {
		data[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	return encode([]object{{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": s.Name}, "data": data}}, "")
}

// clusterObjects returns the objects of a cluster, because a pool needs its cluster's owner. nodes is the
// security group of its machines, or empty if weir must find it.
func clusterObjects(s observed.State, name, inAWS, nodes string) []object {
	network := func(spec map[string]any, role string) map[string]any {
		if nodes != "" {
			spec["network"] = map[string]any{"securityGroupOverrides": map[string]any{role: nodes}}
		}
		return spec
	}
	if !s.Clusters[inAWS] {
		return []object{
			newObject(core, "Cluster", name, nil, map[string]any{"infrastructureRef": map[string]any{"apiVersion": infrastructure, "kind": "AWSCluster", "name": name}}),
			newObject(infrastructure, "AWSCluster", name, nil, network(map[string]any{"region": s.Region}, "node")),
		}
	}
	return []object{
		newObject(core, "Cluster", name, nil, map[string]any{"controlPlaneRef": map[string]any{"apiVersion": controlPlane, "kind": "AWSManagedControlPlane", "name": name}}),
		newObject(controlPlane, "AWSManagedControlPlane", name, nil, network(map[string]any{"eksClusterName": inAWS, "region": s.Region}, "node-eks-additional")),
	}
}

// comment returns a comment for the file, with everything that its manifests cannot express.
func comment(p *Pool) string {
	var b strings.Builder
	what := "the Auto Scaling group "
	if p.Kind == intent.NodegroupPool {
		what = "the EKS nodegroup " + oneLine(p.Cluster) + "/"
	}
	fmt.Fprintf(&b, "# Imported from %s%s.\n", what, oneLine(p.Name))
	switch {
	case p.Owned && p.Configuration != "":
		fmt.Fprintf(&b, "# It holds what the launch configuration %s has, which weir replaces by a launch template.\n", oneLine(p.Configuration))
	case p.Owned:
		fmt.Fprintf(&b, "# It holds what the launch template %s has.\n", oneLine(p.Template))
	case p.Template != "":
		fmt.Fprintf(&b, "# Its launch template %s stays what it is: weir reads it and never changes it.\n", oneLine(p.Template))
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "# Not said here: %s: %s.\n", oneLine(n.Field), oneLine(n.Text))
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func encode(objects []object, head string) ([]byte, error) {
	out := bytes.NewBufferString(head)
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	for _, o := range objects {
		if err := e.Encode(escaped(o)); err != nil {
			return nil, fmt.Errorf("write manifest: %w", err)
		}
	}
	return out.Bytes(), nil
}

// escaped protects texts of AWS from being read as variables.
func escaped(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "${", "$${")
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[escaped(k).(string)] = escaped(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = escaped(v[i])
		}
		return out
	}
	return v
}
