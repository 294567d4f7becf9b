package userdata

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Kubeadm is the input of a KubeadmConfig for a worker.
type Kubeadm struct {
	CloudInit
	BootCommands []string
	PreCommands  []string
	PostCommands []string
	Verbosity    *int32
	Join         Join
}

// Text returns the cloud-init document. Because of its first line, cloud-init expands jinja expressions in
// the input on the instance.
func (k Kubeadm) Text() (string, error) {
	config, err := k.Join.yaml()
	if err != nil {
		return "", err
	}
	d := document{strict: true}
	d.WriteString("## template: jinja\n#cloud-config\n")
	d.line(0, "write_files:")
	files := append(append([]File(nil), k.Files...), File{Path: joinConfigPath, Owner: "root:root", Permissions: "0640", Content: "---\n" + config})
	if k.Join.Fetched != nil {
		files = append(files, File{Path: fetchScript, Owner: "root:root", Permissions: "0700", Content: strings.TrimSuffix(k.Join.Fetched.script(), "\n")})
	}
	d.files("-   ", files)
	// The placeholder creates the directory that the last command writes to, on Linux and Windows.
	d.files("-   ", []File{{Path: "/run/cluster-api/placeholder", Owner: "root:root", Permissions: "0640",
		Content: "This file exists so that its directory does."}})
	if len(k.BootCommands) > 0 {
		d.line(0, "bootcmd:")
		d.commands(k.BootCommands)
	}
	d.line(0, "runcmd:")
	d.commands(k.PreCommands)
	join := "kubeadm join --config " + joinConfigPath
	if k.Join.Fetched != nil {
		// With sh, because /run may be mounted without permission to execute.
		join = "sh " + fetchScript + " && " + join
	}
	if k.Verbosity != nil {
		join += fmt.Sprintf(" -v %d", *k.Verbosity)
	}
	d.line(2, "- ", scalar(join+" && echo success > /run/cluster-api/bootstrap-success.complete"))
	d.commands(k.PostCommands)
	d.modules(k.CloudInit)
	d.WriteByte('\n')
	return k.Join.Fetched.fill(d.String()), nil
}

// Join is kubeadm's JoinConfiguration for a worker, independent of its format version. Empty and nil members
// are omitted.
type Join struct {
	// Minor is the Kubernetes minor version, 31 for 1.31. kubeadm reads v1beta4
	// from 1.31 on, v1beta3 from 1.22 on.
	Minor      int
	CACertPath string
	Token      string
	// Fetched is set if the node fetches the token. Token is then empty.
	Fetched               *FetchedToken
	APIServerEndpoint     string
	CACertHashes          []string
	UnsafeSkipCA          bool
	DiscoveryFile         string
	TLSBootstrapToken     string
	NodeName              string
	CRISocket             string
	Taints                []Taint
	KeepNoTaints          bool // an empty list of taints was written
	KubeletExtraArgs      []Arg
	IgnorePreflightErrors []string
	ImagePullPolicy       string
	ImagePullSerial       *bool
	SkipPhases            []string
	PatchesDirectory      string
	Timeouts              Timeouts
}

// Arg is an argument. In v1beta4, a name may occur several times.
type Arg struct{ Name, Value string }

// Taint is a Kubernetes taint.
type Taint struct {
	Key    string `json:"key" check:"required"`
	Value  string `json:"value"`
	Effect string `json:"effect" check:"required"`
}

// Timeouts are Go durations, such as "5m0s". For empty ones, kubeadm chooses. v1beta3 has only a discovery
// timeout, which Cluster API sets from TLSBootstrap.
type Timeouts struct {
	ControlPlaneComponentHealthCheck, KubeletHealthCheck, KubernetesAPICall string
	EtcdAPICall, TLSBootstrap, Discovery                                    string
}

// Minimum is the oldest Kubernetes minor version for which a join configuration can be written.
const Minimum = 22

// yaml returns the JoinConfiguration in the newest API version that kubeadm of the pool's Kubernetes
// version reads: v1beta4 from 1.31, and v1beta3 before.
func (j Join) yaml() (string, error) {
	if j.Minor < Minimum {
		return "", fmt.Errorf("write join configuration: Kubernetes 1.%d is older than 1.%d", j.Minor, Minimum)
	}
	v4 := j.Minor >= 31
	doc := map[string]any{"apiVersion": "kubeadm.k8s.io/v1beta3", "kind": "JoinConfiguration"}
	if v4 {
		doc["apiVersion"] = "kubeadm.k8s.io/v1beta4"
	}
	put(doc, "caCertPath", j.CACertPath)
	discovery := j.discovery()
	if v4 {
		putMap(doc, "timeouts", j.Timeouts.members())
	} else {
		put(discovery, "timeout", j.Timeouts.TLSBootstrap)
	}
	doc["discovery"] = discovery
	putMap(doc, "nodeRegistration", j.nodeRegistration(v4))
	putList(doc, "skipPhases", j.SkipPhases)
	if j.PatchesDirectory != "" {
		doc["patches"] = map[string]any{"directory": j.PatchesDirectory}
	}
	out, err := yaml.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("write join configuration: %w", err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// discovery returns the discovery section: a file if it is set, and otherwise a bootstrap token.
func (j Join) discovery() map[string]any {
	d := map[string]any{}
	put(d, "tlsBootstrapToken", j.TLSBootstrapToken)
	if j.DiscoveryFile != "" {
		d["file"] = map[string]any{"kubeConfigPath": j.DiscoveryFile}
		return d
	}
	token := map[string]any{}
	put(token, "token", j.Token)
	put(token, "apiServerEndpoint", j.APIServerEndpoint)
	putList(token, "caCertHashes", j.CACertHashes)
	if j.UnsafeSkipCA {
		token["unsafeSkipCAVerification"] = true
	}
	if j.Fetched != nil {
		j.Fetched.wait(token)
	}
	d["bootstrapToken"] = token
	return d
}

// nodeRegistration returns the section of that name. v4 selects the form of v1beta4. With KeepNoTaints, an
// empty list of taints is written too.
func (j Join) nodeRegistration(v4 bool) map[string]any {
	r := map[string]any{}
	put(r, "name", j.NodeName)
	put(r, "criSocket", j.CRISocket)
	put(r, "imagePullPolicy", j.ImagePullPolicy)
	putList(r, "ignorePreflightErrors", j.IgnorePreflightErrors)
	if v4 && j.ImagePullSerial != nil {
		r["imagePullSerial"] = *j.ImagePullSerial
	}
	if len(j.Taints) > 0 || j.KeepNoTaints {
		taints := make([]any, len(j.Taints))
		for i, t := range j.Taints {
			one := map[string]any{"key": t.Key, "effect": t.Effect}
			put(one, "value", t.Value)
			taints[i] = one
		}
		r["taints"] = taints
	}
	switch {
	case len(j.KubeletExtraArgs) == 0:
	case v4:
		args := make([]any, len(j.KubeletExtraArgs))
		for i, a := range j.KubeletExtraArgs {
			args[i] = map[string]any{"name": a.Name, "value": a.Value}
		}
		r["kubeletExtraArgs"] = args
	default:
		args := map[string]any{}
		for _, a := range j.KubeletExtraArgs {
			args[a.Name] = a.Value
		}
		r["kubeletExtraArgs"] = args
	}
	return r
}

func (t Timeouts) members() map[string]any {
	m := map[string]any{}
	put(m, "controlPlaneComponentHealthCheck", t.ControlPlaneComponentHealthCheck)
	put(m, "kubeletHealthCheck", t.KubeletHealthCheck)
	put(m, "kubernetesAPICall", t.KubernetesAPICall)
	put(m, "etcdAPICall", t.EtcdAPICall)
	put(m, "tlsBootstrap", t.TLSBootstrap)
	put(m, "discovery", t.Discovery)
	return m
}

func put(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}

func putList(m map[string]any, key string, values []string) {
	if len(values) > 0 {
		m[key] = values
	}
}

func putMap(m map[string]any, key string, value map[string]any) {
	if len(value) > 0 {
		m[key] = value
	}
}
