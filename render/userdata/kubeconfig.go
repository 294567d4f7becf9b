package userdata

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// Kubeconfig is the file with which a node finds and trusts its cluster if kubeadm uses file discovery. Empty
// members are omitted.
type Kubeconfig struct {
	Server, TLSServerName, ProxyURL string
	InsecureSkipTLSVerify           bool
	// CertificateAuthority is base64.
	CertificateAuthority string
	AuthProvider         *AuthProvider
	Exec                 *AuthExec
}

// AuthProvider names a provider of credentials that the kubelet knows.
type AuthProvider struct {
	Name   string            `json:"name" check:"required,minlen=1"`
	Config map[string]string `json:"config"`
}

// AuthExec is a command on the instance that gives credentials.
type AuthExec struct {
	Command            string    `json:"command" check:"required,minlen=1"`
	Args               []string  `json:"args"`
	Env                []AuthEnv `json:"env"`
	APIVersion         string    `json:"apiVersion" default:"client.authentication.k8s.io/v1"`
	ProvideClusterInfo bool      `json:"provideClusterInfo"`
}

// AuthEnv is a variable in the environment of an AuthExec.
type AuthEnv struct {
	Name  string `json:"name" check:"required,minlen=1"`
	Value string `json:"value" check:"required"`
}

// File returns the kubeconfig as a file of the machine at path, which only root and its group can read.
func (k Kubeconfig) File(path string) (File, error) {
	cluster, user := map[string]any{}, map[string]any{}
	put(cluster, "server", k.Server)
	put(cluster, "tls-server-name", k.TLSServerName)
	put(cluster, "proxy-url", k.ProxyURL)
	put(cluster, "certificate-authority-data", k.CertificateAuthority)
	if k.InsecureSkipTLSVerify {
		cluster["insecure-skip-tls-verify"] = true
	}
	if p := k.AuthProvider; p != nil {
		provider := map[string]any{"name": p.Name}
		if len(p.Config) > 0 {
			provider["config"] = p.Config
		}
		user["auth-provider"] = provider
	}
	if e := k.Exec; e != nil {
		// Nobody can answer a prompt.
		exec := map[string]any{"command": e.Command, "apiVersion": e.APIVersion, "interactiveMode": "Never", "provideClusterInfo": e.ProvideClusterInfo}
		putList(exec, "args", e.Args)
		if len(e.Env) > 0 {
			var env []map[string]any
			for _, v := range e.Env {
				env = append(env, map[string]any{"name": v.Name, "value": v.Value})
			}
			exec["env"] = env
		}
		user["exec"] = exec
	}
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "default",
		"clusters": []any{map[string]any{"name": "default", "cluster": cluster}},
		"users":    []any{map[string]any{"name": "default", "user": user}},
		"contexts": []any{map[string]any{"name": "default", "context": map[string]any{"cluster": "default", "user": "default"}}},
	})
	if err != nil {
		return File{}, fmt.Errorf("write kubeconfig: %w", err)
	}
	return File{Path: path, Owner: "root:root", Permissions: "0640", Content: string(out)}, nil
}
