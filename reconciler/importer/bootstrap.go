package importer

import (
	"github.com/weir-gitops/weir/render/userdata"
)

// Secret is a Secret with user data as it is.
type Secret struct {
	Name string
	// Keys lists the keys of Values, in order.
	Keys   []string
	Values map[string]string
}

// bootstrap is the result for user data: the reference in the MachinePool, and the object or Secret with the
// data.
type bootstrap struct {
	of      map[string]any
	objects []object
	secret  *Secret
}

const bootstrapAPI = "bootstrap.cluster.x-k8s.io/v1beta2"

// bootstrap makes objects of the user data of a pool. why explains why that is not possible. Data that weir
// or Cluster API Provider AWS generated becomes the configuration that generates it again. If it contains
// texts of the user's own, it becomes a Secret like other data, unless plain text is allowed.
func (m *maker) bootstrap(key, cluster, text string) (b bootstrap, why string) {
	if text == "" {
		return bootstrap{of: map[string]any{"dataSecretName": ""}}, ""
	}
	if kind, spec := m.configuration(cluster, text); kind != "" {
		return bootstrap{
			of:      map[string]any{"configRef": map[string]any{"apiVersion": bootstrapAPI, "kind": kind, "name": key}},
			objects: []object{newObject(bootstrapAPI, kind, key, nil, spec)},
		}, ""
	}
	if !m.options.Secrets && !m.options.Plain {
		return b, "its user data would be in an unencrypted Secret; give --age RECIPIENT or --kms-key-arn ARN to encrypt it, or --plain-user-data"
	}
	s := &Secret{Name: key, Keys: []string{"value"}, Values: map[string]string{"value": text}}
	if userdata.IgnitionVersion(text) != "" {
		s.Keys, s.Values["format"] = append(s.Keys, "format"), "ignition"
	}
	return bootstrap{of: map[string]any{"dataSecretName": key}, secret: s}, ""
}

// configuration returns the kind and spec of the bootstrap configuration that generates the user data again.
// The kind is empty if none does.
func (m *maker) configuration(cluster, text string) (kind string, spec map[string]any) {
	if !m.state.Clusters[cluster] { // both kinds are only for EKS nodes
		return "", nil
	}
	if n, ok := userdata.ReadNodeadm(text); ok && n.ClusterName == cluster && (m.options.Plain || !n.FreeText()) {
		return "NodeadmConfig", some(map[string]any{
			"featureGates": n.FeatureGates, "preNodeadmCommands": n.PreCommands,
			"kubelet":    map[string]any{"config": n.KubeletConfig, "flags": n.KubeletFlags},
			"containerd": map[string]any{"config": n.ContainerdConfig, "baseRuntimeSpec": n.BaseRuntimeSpec},
			"files":      n.Files, "users": n.Users, "ntp": n.NTP,
		})
	}
	e, ok := userdata.ReadEKS(text)
	if !ok || e.ClusterName != cluster || !m.options.Plain && e.FreeText() || e.IPv6 != (e.ServiceIPv6CIDR != "") {
		return "", nil
	}
	spec = map[string]any{
		"kubeletExtraArgs": e.KubeletExtraArgs, "containerRuntime": e.ContainerRuntime, "dnsClusterIP": e.DNSClusterIP, "dockerConfigJson": e.DockerConfigJSON,
		"apiRetryAttempts": e.APIRetryAttempts, "useMaxPods": e.UseMaxPods, "serviceIPV6Cidr": e.ServiceIPv6CIDR, "boostrapCommandOverride": e.Command,
		"preBootstrapCommands": e.PreCommands, "postBootstrapCommands": e.PostCommands, "files": e.Files, "users": e.Users, "ntp": e.NTP,
	}
	if e.PauseContainerAccount != "" {
		spec["pauseContainer"] = map[string]any{"accountNumber": e.PauseContainerAccount, "version": e.PauseContainerVersion}
	}
	return "EKSConfig", some(spec)
}

// some returns a spec without unset values.
func some(spec map[string]any) map[string]any {
	out, _ := withoutAbsent(plain(spec)).(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out
}

// withoutAbsent removes null and empty texts, lists and maps. It returns nil if nothing remains.
func withoutAbsent(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if v[k] = withoutAbsent(v[k]); v[k] == nil {
				delete(v, k)
			}
		}
		if len(v) > 0 {
			return v
		}
		return nil
	case []any:
		for i := range v {
			if v[i] = withoutAbsent(v[i]); v[i] == nil {
				v[i] = ""
			}
		}
		if len(v) > 0 {
			return v
		}
		return nil
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}
