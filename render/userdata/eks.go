package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// EKS is the input of an EKSConfig, for Amazon Linux 2 nodes. They join with a script in the image. Nil and
// empty values omit an option. All values except for Command, PreCommands and PostCommands are quoted for the
// shell, so that they cannot add a command or an option.
type EKS struct {
	CloudInit
	ClusterName           string
	KubeletExtraArgs      map[string]string
	ContainerRuntime      string
	ServiceIPv6CIDR       string
	IPv6                  bool
	UseMaxPods            *bool
	APIRetryAttempts      *int
	PauseContainerAccount string
	PauseContainerVersion string
	DNSClusterIP          string
	// DockerConfigJSON is quoted for the shell. An empty value that is written becomes an empty argument.
	DockerConfigJSON *string
	PreCommands      []string
	PostCommands     []string
	// Command replaces /etc/eks/bootstrap.sh.
	Command string
}

// Text returns the cloud-init document.
func (e EKS) Text() string {
	var d document
	d.WriteString("#cloud-config")
	if len(e.Files) > 0 {
		d.line(0, "write_files:")
		d.files("  - ", e.Files)
	}
	d.line(0, "runcmd:")
	d.commands(e.PreCommands)
	d.line(2, "- ", scalar(e.joinCommand()))
	d.commands(e.PostCommands)
	d.modules(e.CloudInit)
	d.WriteByte('\n')
	return d.String()
}

// joinCommand returns the command that joins the cluster, with its options in CAPA's order.
func (e EKS) joinCommand() string {
	command := "/etc/eks/bootstrap.sh"
	if e.Command != "" {
		command = e.Command
	}
	words := []string{command, shellQuote(e.ClusterName)}
	option := func(name, value string) {
		if value != "" {
			words = append(words, "--"+name, value)
		}
	}
	// text is like option, for a value that is not quoted yet.
	text := func(name, value string) {
		if value != "" {
			option(name, shellQuote(value))
		}
	}
	if len(e.KubeletExtraArgs) > 0 {
		var args []string
		for _, k := range slices.Sorted(maps.Keys(e.KubeletExtraArgs)) {
			args = append(args, "--"+k+"="+e.KubeletExtraArgs[k])
		}
		option("kubelet-extra-args", "'"+strings.ReplaceAll(strings.Join(args, " "), "'", `'"'"'`)+"'")
	}
	text("container-runtime", e.ContainerRuntime)
	if e.IPv6 {
		option("ip-family", "ipv6")
	}
	text("service-ipv6-cidr", e.ServiceIPv6CIDR)
	if e.UseMaxPods != nil {
		option("use-max-pods", fmt.Sprint(*e.UseMaxPods))
	}
	if e.APIRetryAttempts != nil {
		option("aws-api-retry-attempts", fmt.Sprint(*e.APIRetryAttempts))
	}
	text("pause-container-account", e.PauseContainerAccount)
	text("pause-container-version", e.PauseContainerVersion)
	text("dns-cluster-ip", e.DNSClusterIP)
	if e.DockerConfigJSON != nil {
		option("docker-config-json", shellQuote(*e.DockerConfigJSON))
	}
	return strings.Join(words, " ")
}

// shellQuote quotes v as one word for a POSIX shell.
func shellQuote(v string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r)
	}
	if v != "" && !strings.ContainsFunc(v, func(r rune) bool { return !safe(r) }) {
		return v
	}
	return "'" + strings.ReplaceAll(v, "'", `'"'"'`) + "'"
}
