package importer

import (
	"bytes"
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

// finish makes the objects of a pool.
func (m *maker) finish(p Pool, key string, spec, options map[string]any, ref observed.TemplateRef, version string) Pool {
	p.Key, p.File = key, "pools/"+key+".yaml"
	annotations := map[string]any{}
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
	template := map[string]any{
		"clusterName": objectName(p.Cluster), "bootstrap": map[string]any{"dataSecretName": ""},
		"infrastructureRef": map[string]any{"apiVersion": infrastructure, "kind": string(p.Kind), "name": key},
	}
	if version != "" {
		template["version"] = version
	}
	p.objects = []object{
		newObject(core, "MachinePool", key, nil, map[string]any{"clusterName": objectName(p.Cluster), "template": map[string]any{"spec": template}}),
		newObject(infrastructure, string(p.Kind), key, annotations, spec),
	}
	if len(options) > 0 {
		options["poolRef"] = map[string]any{"kind": string(p.Kind), "name": key}
		p.objects = append(p.objects, newObject("weir.dev/v1alpha1", "PoolOptions", key, nil, options))
	}
	return p.done()
}

// Files are the files of pools, by their paths: those that are not refused, the clusters
// that they are of, and a kustomization of both.
func Files(s observed.State, pools []Pool) (map[string][]byte, error) {
	out := map[string][]byte{}
	clusters := map[string]string{}
	resources := []string{}
	for i := range pools {
		p := &pools[i]
		if p.State == Refused {
			continue
		}
		name := objectName(p.Cluster)
		if other, ok := clusters[name]; ok && other != p.Cluster {
			return nil, fmt.Errorf("the clusters %s and %s would have the same name in manifests: import them into directories of their own, with --cluster", other, p.Cluster)
		}
		clusters[name] = p.Cluster
		var err error
		if out[p.File], err = encode(p.objects, comment(p)); err != nil {
			return nil, err
		}
		resources = append(resources, p.File)
	}
	var objects []object
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		objects = append(objects, clusterObjects(s, name, clusters[name])...)
	}
	var err error
	if out["clusters.yaml"], err = encode(objects, ""); err != nil {
		return nil, err
	}
	resources = append([]string{"clusters.yaml"}, resources...)
	out["kustomization.yaml"], err = encode([]object{{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}}, "")
	return out, err
}

// clusterObjects stand for a cluster: pools need one that says whose it is.
func clusterObjects(s observed.State, name, inAWS string) []object {
	if !s.Clusters[inAWS] {
		return []object{
			newObject(core, "Cluster", name, nil, map[string]any{"infrastructureRef": map[string]any{"apiVersion": infrastructure, "kind": "AWSCluster", "name": name}}),
			newObject(infrastructure, "AWSCluster", name, nil, map[string]any{"region": s.Region}),
		}
	}
	return []object{
		newObject(core, "Cluster", name, nil, map[string]any{"controlPlaneRef": map[string]any{"apiVersion": controlPlane, "kind": "AWSManagedControlPlane", "name": name}}),
		newObject(controlPlane, "AWSManagedControlPlane", name, nil, map[string]any{"eksClusterName": inAWS, "region": s.Region}),
	}
}

// comment says in the file what its manifests cannot say.
func comment(p *Pool) string {
	var b strings.Builder
	what := "the Auto Scaling group "
	if p.Kind == intent.NodegroupPool {
		what = "the EKS nodegroup " + oneLine(p.Cluster) + "/"
	}
	fmt.Fprintf(&b, "# Imported from %s%s.\n", what, oneLine(p.Name))
	if p.Template != "" {
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

// escaped keeps texts of AWS from being taken for variables.
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
