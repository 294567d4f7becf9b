package userdata

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The Read functions reverse Text. They accept only texts for which Text would write the same bytes again.
// For all other texts, ok is false, whatever their meaning. They do not read disks and mounts.

// ReadEKS parses the document of an EKSConfig.
func ReadEKS(text string) (out EKS, ok bool) {
	rest, ok := strings.CutPrefix(text, "#cloud-config\n")
	if !ok {
		return EKS{}, false
	}
	d, ok := readCloud(rest)
	if !ok {
		return EKS{}, false
	}
	for i, c := range d.RunCmd {
		words, quoted := shellWords(c)
		if !quoted || len(words) < 2 || !strings.HasPrefix(words[0], "/") {
			continue
		}
		out = EKS{CloudInit: d.cloudInit(text, "  - "), ClusterName: words[1], PreCommands: d.RunCmd[:i:i], PostCommands: slices.Clone(d.RunCmd[i+1:])}
		if words[0] != "/etc/eks/bootstrap.sh" {
			out.Command = words[0]
		}
		if out.options(words[2:]) && out.Text() == text {
			return out, true
		}
	}
	return EKS{}, false
}

// options parses the options of the join command.
func (e *EKS) options(words []string) bool {
	for ; len(words) >= 2; words = words[2:] {
		v := words[1]
		switch words[0] {
		case "--kubelet-extra-args":
			e.KubeletExtraArgs = map[string]string{}
			for _, arg := range strings.Split(strings.TrimPrefix(v, "--"), " --") {
				name, value, _ := strings.Cut(arg, "=")
				e.KubeletExtraArgs[name] = value
			}
		case "--container-runtime":
			e.ContainerRuntime = v
		case "--ip-family":
			e.IPv6 = v == "ipv6"
		case "--service-ipv6-cidr":
			e.ServiceIPv6CIDR = v
		case "--use-max-pods":
			use := v == "true"
			e.UseMaxPods = &use
		case "--aws-api-retry-attempts":
			n, err := strconv.Atoi(v)
			if err != nil {
				return false
			}
			e.APIRetryAttempts = &n
		case "--pause-container-account":
			e.PauseContainerAccount = v
		case "--pause-container-version":
			e.PauseContainerVersion = v
		case "--dns-cluster-ip":
			e.DNSClusterIP = v
		case "--docker-config-json":
			e.DockerConfigJSON = &v
		default:
			return false
		}
	}
	return len(words) == 0
}

// FreeText reports whether the document contains the user's own texts, which may contain a secret.
func (e EKS) FreeText() bool {
	return e.freeText() || len(e.PreCommands)+len(e.PostCommands) > 0 || e.DockerConfigJSON != nil
}

// shellWords splits a command that shellQuote has quoted. ok is false for any other command.
func shellWords(command string) (words []string, ok bool) {
	for rest := command; ; {
		word := ""
		for rest != "" && rest[0] != ' ' {
			quote := rest[0]
			if quote != '\'' && quote != '"' {
				end := strings.IndexAny(rest, ` '"`)
				if end < 0 {
					end = len(rest)
				}
				word, rest = word+rest[:end], rest[end:]
				continue
			}
			inner, after, closed := strings.Cut(rest[1:], string(quote))
			if !closed {
				return nil, false
			}
			word, rest = word+inner, after
		}
		words = append(words, word)
		if rest == "" {
			return words, true
		}
		rest = rest[1:]
	}
}

// ReadNodeadm parses the document of a NodeadmConfig.
func ReadNodeadm(text string) (out Nodeadm, ok bool) {
	const config = "\n--" + boundary + "\nContent-Type: application/node.eks.aws\n\n---\n"
	head, rest, ok := strings.Cut(text, config)
	if !ok {
		return Nodeadm{}, false
	}
	body, rest, ok := strings.Cut(rest, "\n--"+boundary)
	if !ok {
		return Nodeadm{}, false
	}
	var d struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Spec       struct {
			Cluster struct {
				Name, Cidr           string
				APIServerEndpoint    string `yaml:"apiServerEndpoint"`
				CertificateAuthority string `yaml:"certificateAuthority"`
			}
			FeatureGates map[string]bool `yaml:"featureGates"`
			Kubelet      struct {
				Config any
				Flags  []string
			}
			Containerd struct {
				Config          string
				BaseRuntimeSpec any `yaml:"baseRuntimeSpec"`
			}
		}
	}
	if !decode(body, &d) {
		return Nodeadm{}, false
	}
	c := d.Spec.Cluster
	out = Nodeadm{ClusterName: c.Name, APIServerEndpoint: c.APIServerEndpoint, CertificateAuthority: c.CertificateAuthority, ServiceCIDR: c.Cidr,
		FeatureGates: d.Spec.FeatureGates, KubeletConfig: d.Spec.Kubelet.Config, KubeletFlags: d.Spec.Kubelet.Flags,
		ContainerdConfig: d.Spec.Containerd.Config, BaseRuntimeSpec: d.Spec.Containerd.BaseRuntimeSpec}
	if _, commands, found := strings.Cut(head, "\nset -o nounset\n"); found {
		commands, _ = strings.CutSuffix(commands, "\n--"+boundary+"\n")
		out.PreCommands = strings.Split(commands, "\n")
	}
	if _, cloud, found := strings.Cut(rest, "\n#cloud-config\n"); found {
		cloud, _ = strings.CutSuffix(cloud, "\n--"+boundary+"--")
		d, ok := readCloud(cloud)
		if !ok {
			return Nodeadm{}, false
		}
		out.CloudInit = d.cloudInit(text, "  - ")
	}
	again, err := out.Text()
	return out, err == nil && again == text
}

// FreeText reports whether the document contains the user's own texts, which may contain a secret.
func (n Nodeadm) FreeText() bool {
	return n.freeText() || len(n.PreCommands) > 0 || n.ContainerdConfig != "" || n.BaseRuntimeSpec != nil
}

func (c CloudInit) freeText() bool {
	return len(c.Files) > 0 || slices.ContainsFunc(c.Users, func(u User) bool { return u.Passwd != nil })
}

// cloudDocument is the part of a cloud-config that is parsed.
type cloudDocument struct {
	WriteFiles []struct {
		Path, Encoding, Owner, Permissions, Content string
		Append                                      bool
	} `yaml:"write_files"`
	RunCmd []string
	NTP    *struct {
		Enabled *bool
		Servers []string
	}
	Users []struct {
		Name, Passwd, Gecos, Groups, Homedir, Shell, Sudo string
		PrimaryGroup                                      string `yaml:"primary_group"`
		Inactive                                          *bool
		LockPassword                                      *bool    `yaml:"lock_passwd"`
		SSHAuthorizedKeys                                 []string `yaml:"ssh_authorized_keys"`
	}
}

func readCloud(text string) (d cloudDocument, ok bool) { return d, decode(text, &d) }

// decode parses YAML. It returns false if the YAML has fields that v does not have.
func decode(text string, v any) bool {
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(v)
	return err == nil || errors.Is(err, io.EOF)
}

// cloudInit returns the content of the document, whose text has dash before each file.
func (d cloudDocument) cloudInit(text, dash string) CloudInit {
	var out CloudInit
	for _, f := range d.WriteFiles {
		file := File{Path: f.Path, Encoding: f.Encoding, Owner: f.Owner, Permissions: f.Permissions, Append: f.Append, Content: f.Content}
		// A block always ends in a line feed, even if the content does not.
		if without, ends := strings.CutSuffix(f.Content, "\n"); ends {
			file.Content = without
			var block document
			block.files(dash, []File{file})
			if !strings.Contains(text, block.String()+"\n") || strings.Contains(text, block.String()+"\n      \n") {
				file.Content = f.Content
			}
		}
		out.Files = append(out.Files, file)
	}
	if d.NTP != nil {
		out.NTP = &NTP{Servers: d.NTP.Servers, Enabled: d.NTP.Enabled}
	}
	some := func(v string) *string {
		if v == "" {
			return nil
		}
		return &v
	}
	for _, u := range d.Users {
		out.Users = append(out.Users, User{Name: u.Name, Passwd: some(u.Passwd), Gecos: some(u.Gecos), Groups: some(u.Groups), HomeDir: some(u.Homedir), Shell: some(u.Shell), Sudo: some(u.Sudo),
			PrimaryGroup: some(u.PrimaryGroup), Inactive: u.Inactive, LockPassword: u.LockPassword, SSHAuthorizedKeys: u.SSHAuthorizedKeys})
	}
	return out
}
