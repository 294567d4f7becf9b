package deploy

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// built is what kustomize makes of an overlay, by kind and name.
func built(t *testing.T, dir string) map[string]*yaml.RNode {
	t.Helper()
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("kubernetes", dir))
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	out := map[string]*yaml.RNode{}
	for _, r := range m.Resources() {
		key := r.GetKind() + "/" + r.GetName()
		if out[key] != nil {
			t.Errorf("%s: %s is there twice", dir, key)
		}
		if r.GetNamespace() != "weir" {
			t.Errorf("%s: %s is in the namespace %q", dir, key, r.GetNamespace())
		}
		out[key] = &r.RNode
	}
	return out
}

// at is the value at a path, such as "spec.template.spec.containers.0.image", in the
// form that it has in YAML, and "" where there is none.
func at(t *testing.T, n *yaml.RNode, path string) string {
	t.Helper()
	for _, step := range strings.Split(path, ".") {
		if n == nil {
			return ""
		}
		if n.YNode().Kind == yaml.SequenceNode {
			list, err := n.Elements()
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(list) {
				return ""
			}
			n = list[i]
			continue
		}
		f := n.Field(strings.ReplaceAll(step, "|", "."))
		if f == nil {
			return ""
		}
		n = f.Value
	}
	if n == nil {
		return ""
	}
	s, err := n.String()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(s)
}

// TestKubernetes: every overlay builds, of fields that Kubernetes has, and keeps what
// the base promises.
func TestKubernetes(t *testing.T) {
	for dir, kinds := range map[string][]string{
		"base":             {"ConfigMap/weir-config", "Deployment/weir", "NetworkPolicy/weir", "PersistentVolumeClaim/weir-state", "Service/weir", "ServiceAccount/weir"},
		"overlays/irsa":    {"ConfigMap/weir-config", "Deployment/weir", "NetworkPolicy/weir", "PersistentVolumeClaim/weir-state", "Service/weir", "ServiceAccount/weir"},
		"overlays/several": {"ConfigMap/weir-config", "Deployment/weir", "NetworkPolicy/weir", "PodDisruptionBudget/weir", "Service/weir", "ServiceAccount/weir"},
		"overlays/trial":   {"ConfigMap/weir-config", "Deployment/weir", "NetworkPolicy/weir", "Service/weir", "ServiceAccount/weir"},
	} {
		t.Run(dir, func(t *testing.T) {
			all := built(t, dir)
			var got []string
			for key, n := range all {
				got = append(got, key)
				kind, _, _ := strings.Cut(key, "/")
				schema := openapi.SchemaForResourceType(yaml.TypeMeta{APIVersion: n.GetApiVersion(), Kind: kind})
				if schema == nil {
					t.Errorf("%s: Kubernetes has no %s %s", key, n.GetApiVersion(), kind)
					continue
				}
				for _, fault := range unknownFields(n, schema, "") {
					t.Errorf("%s: %s", key, fault)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, kinds) {
				t.Errorf("holds %v, want %v", got, kinds)
			}
			restricted(t, all["Deployment/weir"])
			wiring(t, all)
		})
	}
}

// TestNetworkPolicy: what weir needs passes, and what would give it the node's role does not.
func TestNetworkPolicy(t *testing.T) {
	policy := built(t, "base")["NetworkPolicy/weir"]
	text, err := policy.String()
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Spec struct {
			Egress []struct {
				To []struct {
					NamespaceSelector *struct{} `yaml:"namespaceSelector"`
					IPBlock           struct {
						CIDR   string
						Except []string
					} `yaml:"ipBlock"`
				}
				Ports []struct {
					Port     int
					Protocol string
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	// passes goes by what Kubernetes says: a pod of the cluster is where a selector of
	// namespaces fits, and what is no pod where a block has its address.
	passes := func(address, protocol string, port int) bool {
		for _, rule := range spec.Spec.Egress {
			fits := false
			for _, p := range rule.Ports {
				fits = fits || p.Port == port && p.Protocol == protocol
			}
			for _, to := range rule.To {
				if !fits {
					continue
				}
				if address == "pod" {
					if to.NamespaceSelector != nil {
						return true
					}
					continue
				}
				within := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(address)) }
				if to.IPBlock.CIDR != "" && within(to.IPBlock.CIDR) && !slices.ContainsFunc(to.IPBlock.Except, within) {
					return true
				}
			}
		}
		return false
	}
	for _, tc := range []struct {
		what, address, protocol string
		port                    int
		want                    bool
	}{
		{"names of the cluster", "pod", "UDP", 53, true},
		{"NodeLocal DNSCache", "169.254.20.10", "UDP", 53, true},
		{"AWS", "52.94.5.1", "TCP", 443, true},
		{"AWS by an endpoint in the VPC", "10.0.3.7", "TCP", 443, true},
		{"AWS over IPv6", "2a05:d018::1", "TCP", 443, true},
		{"Git over SSH", "192.0.2.1", "TCP", 22, true},
		{"an API server of kubeadm's", "10.0.3.8", "TCP", 6443, true},
		{"OTLP over HTTP", "pod", "TCP", 4318, true},
		{"OTLP on gRPC's port", "pod", "TCP", 4317, true},
		{"EKS Pod Identity", "169.254.170.23", "TCP", 80, true},
		{"EKS Pod Identity over IPv6", "fd00:ec2::23", "TCP", 80, true},
		{"EC2's metadata", "169.254.169.254", "TCP", 80, false},
		{"EC2's metadata by another port", "169.254.169.254", "TCP", 443, false},
		{"EC2's metadata over IPv6", "fd00:ec2::254", "TCP", 80, false},
		{"EC2's metadata over IPv6 by another port", "fd00:ec2::254", "TCP", 443, false},
		{"the credentials of ECS", "169.254.170.2", "TCP", 80, false},
		{"HTTP anywhere", "192.0.2.1", "TCP", 80, false},
		{"OTLP anywhere", "192.0.2.1", "TCP", 4318, false},
		{"other pods' pages", "pod", "TCP", 8080, false},
	} {
		if got := passes(tc.address, tc.protocol, tc.port); got != tc.want {
			t.Errorf("%s (%s:%d) passes: %t", tc.what, tc.address, tc.port, got)
		}
	}
}

// unknownFields walks an object beside its schema.
func unknownFields(n *yaml.RNode, schema *openapi.ResourceSchema, path string) (faults []string) {
	switch n.YNode().Kind {
	case yaml.MappingNode:
		fields, err := n.Fields()
		if err != nil {
			return []string{err.Error()}
		}
		for _, f := range fields {
			below := schema.Field(f)
			if below == nil {
				faults = append(faults, "no field "+path+"."+f)
				continue
			}
			faults = append(faults, unknownFields(n.Field(f).Value, below, path+"."+f)...)
		}
	case yaml.SequenceNode:
		list, err := n.Elements()
		if err != nil {
			return []string{err.Error()}
		}
		below := schema.Elements()
		if below == nil {
			return []string{path + " is not a list"}
		}
		for i, e := range list {
			faults = append(faults, unknownFields(e, below, fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		// A quantity, a port and a field set have types of their own in the schema.
		types, tag := schema.Schema.Type, n.YNode().ShortTag()
		want := map[string]string{yaml.NodeTagString: "string", yaml.NodeTagInt: "integer", yaml.NodeTagBool: "boolean"}[tag]
		if len(types) == 1 && schema.Schema.Format != "int-or-string" && types[0] != want && tag != yaml.NodeTagNull {
			faults = append(faults, fmt.Sprintf("%s is %s, want %s", path, tag, types[0]))
		}
	}
	return faults
}

// restricted holds a workload against the Pod Security Standard "restricted", and
// against what weir promises beyond it.
func restricted(t *testing.T, d *yaml.RNode) {
	t.Helper()
	const pod, container = "spec.template.spec.", "spec.template.spec.containers.0."
	// One weir is alone with its volume; several hand over to each other, on machines of their own.
	replicas, strategy := "1", "Recreate"
	if at(t, d, pod+"topologySpreadConstraints.1.topologyKey") == "kubernetes.io/hostname" {
		replicas, strategy = "2", "RollingUpdate"
		if at(t, d, "spec.strategy.rollingUpdate.maxUnavailable") != "0" {
			t.Error("an update leaves fewer than there are to be")
		}
	}
	for path, want := range map[string]string{
		"spec.replicas": replicas, "spec.strategy.type": strategy,
		pod + "securityContext.runAsNonRoot": "true", pod + "securityContext.runAsUser": "65532", pod + "securityContext.seccompProfile.type": "RuntimeDefault",
		pod + "hostNetwork": "", pod + "hostPID": "", pod + "hostIPC": "", pod + "containers.1": "", pod + "initContainers": "",
		pod + "automountServiceAccountToken":                   "false",
		container + "securityContext.allowPrivilegeEscalation": "false", container + "securityContext.privileged": "false",
		container + "securityContext.readOnlyRootFilesystem": "true", container + "securityContext.capabilities.drop": "[ALL]",
		container + "securityContext.capabilities.add": "", container + "securityContext.runAsUser": "", container + "ports.0.hostPort": "",
		container + "livenessProbe.httpGet.path": "/healthz", container + "readinessProbe.httpGet.path": "/readyz", container + "startupProbe.httpGet.path": "/healthz",
	} {
		if got := at(t, d, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	volumes, err := d.Pipe(yaml.Lookup("spec", "template", "spec", "volumes"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := volumes.Elements()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		fields, err := v.Fields()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			if !slices.Contains([]string{"name", "configMap", "emptyDir", "persistentVolumeClaim", "secret", "projected"}, f) {
				t.Errorf("volume %s is a %s", at(t, v, "name"), f)
			}
		}
		if mounted := strings.Contains(at(t, d, container+"volumeMounts"), "name: "+at(t, v, "name")); !mounted {
			t.Errorf("volume %s is mounted nowhere", at(t, v, "name"))
		}
	}
}

// wiring checks that objects name each other as they are called.
func wiring(t *testing.T, all map[string]*yaml.RNode) {
	t.Helper()
	d := all["Deployment/weir"]
	const app, component = `app|kubernetes|io/name`, `app|kubernetes|io/component`
	for _, label := range []string{app, component} {
		want := at(t, d, "spec.template.metadata.labels."+label)
		for place, got := range map[string]string{
			"deployment": at(t, d, "spec.selector.matchLabels."+label), "service": at(t, all["Service/weir"], "spec.selector."+label),
			"network policy": at(t, all["NetworkPolicy/weir"], "spec.podSelector.matchLabels."+label),
		} {
			if got == "" || got != want {
				t.Errorf("the %s selects %s=%q, the pod has %q", place, label, got, want)
			}
		}
	}
	if all["ServiceAccount/"+at(t, d, "spec.template.spec.serviceAccountName")] == nil {
		t.Error("there is no such service account")
	}
	config := at(t, all["ConfigMap/weir-config"], "data.weir|yaml")
	port := at(t, d, "spec.template.spec.containers.0.ports.0.containerPort")
	if !strings.Contains(config, "listen: 0.0.0.0:"+port) || port == "" {
		t.Errorf("the configuration does not listen on %s", port)
	}
	if args := at(t, d, "spec.template.spec.containers.0.args"); !strings.Contains(args, "/etc/weir/config/weir.yaml") {
		t.Errorf("arguments %s", args)
	}
	mounts := at(t, d, "spec.template.spec.containers.0.volumeMounts")
	if strings.Contains(mounts, "subPath") {
		t.Error("a file that is mounted by itself is never updated")
	}
	if strings.Contains(config, "/etc/weir/credentials/") && !strings.Contains(mounts, "mountPath: /etc/weir/credentials") {
		t.Error("the configuration names credentials that are not there")
	}
}

// With a role for the service account and the monitoring component.
func TestKubernetesOverlays(t *testing.T) {
	if role := at(t, built(t, "overlays/irsa")["ServiceAccount/weir"], "metadata.annotations.eks|amazonaws|com/role-arn"); role != "arn:aws:iam::123456789012:role/weir" {
		t.Errorf("role %q", role)
	}
	files := filesys.MakeFsInMemory()
	for _, name := range []string{"components/monitoring/kustomization.yaml", "components/monitoring/servicemonitor.yaml"} {
		content, err := filesys.MakeFsOnDisk().ReadFile(filepath.Join("kubernetes", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := files.WriteFile("/"+name, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.WriteFile("/mine/kustomization.yaml", []byte("components: [../components/monitoring]\n")); err != nil {
		t.Fatal(err)
	}
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/mine")
	if err != nil {
		t.Fatal(err)
	}
	service := built(t, "base")["Service/weir"]
	if m.Size() != 1 || m.Resources()[0].GetKind() != "ServiceMonitor" {
		t.Fatalf("the component has %d objects", m.Size())
	}
	monitor := &m.Resources()[0].RNode
	if got, want := at(t, monitor, "spec.selector.matchLabels.app|kubernetes|io/name"), at(t, service, "metadata.labels.app|kubernetes|io/name"); got != want || got == "" {
		t.Errorf("it selects services named %q, there is %q", got, want)
	}
	if got, want := at(t, monitor, "spec.endpoints.0.port"), at(t, service, "spec.ports.0.name"); got != want || got == "" {
		t.Errorf("it scrapes the port %q, there is %q", got, want)
	}
	// The token that it sends is one that may read metrics.
	key := at(t, monitor, "spec.endpoints.0.authorization.credentials.key")
	wanted := "role: metrics, file: /etc/weir/credentials/" + key + "}"
	if config := at(t, built(t, "base")["ConfigMap/weir-config"], "data.weir|yaml"); key == "" || !strings.Contains(config, wanted) {
		t.Errorf("the configuration lacks %q", wanted)
	}
}

// The walk beside the schema finds what Kubernetes would refuse.
func TestUnknownFields(t *testing.T) {
	schema := openapi.SchemaForResourceType(yaml.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"})
	n := yaml.MustParse(`
apiVersion: apps/v1
kind: Deployment
spec:
  replicas: "1"
  stratgy: {}
  template:
    spec:
      containers:
      - {name: weir, imgae: weir, ports: [{containerPort: 8344}], livenessProbe: {httpGet: {port: http}}}
`)
	got := unknownFields(n, schema, "")
	want := []string{".spec.replicas is !!str, want integer", "no field .spec.stratgy", "no field .spec.template.spec.containers[0].imgae"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
