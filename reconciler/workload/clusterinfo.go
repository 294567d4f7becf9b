package workload

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"maps"
	"net"
	"net/url"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
)

// ClusterInfo contains the data, besides a token, that a node needs to find and trust the API server.
type ClusterInfo struct {
	// Endpoint is the API server's host and port.
	Endpoint string
	// CAHashes are the values of kubeadm's caCertHashes, sorted: "sha256:" and the hash of a CA
	// certificate's public key.
	CAHashes []string
}

// ClusterInfo reads the ConfigMap kube-public/cluster-info. kubeadm makes it, and a joining node reads it
// too.
func (c *Cluster) ClusterInfo(ctx context.Context) (ClusterInfo, error) {
	data, err := c.ConfigMap(ctx, "kube-public", "cluster-info")
	if err != nil {
		return ClusterInfo{}, err
	}
	info, problem := readClusterInfo(data["kubeconfig"])
	if problem != "" {
		return ClusterInfo{}, &Error{Kind: Invalid, Verb: "read", Resource: "ConfigMap kube-public/cluster-info", Message: problem}
	}
	return info, nil
}

// readClusterInfo reads the endpoint and the certificate authorities from the kubeconfig of the ConfigMap
// cluster-info. problem explains why the text cannot be used.
func readClusterInfo(text string) (info ClusterInfo, problem string) {
	raw, err := clientcmd.Load([]byte(text))
	if err != nil || len(raw.Clusters) == 0 {
		return info, "its key kubeconfig is not a kubeconfig with a cluster"
	}
	cluster := raw.Clusters[slices.Min(slices.Collect(maps.Keys(raw.Clusters)))] // it has one cluster, with an empty name
	u, err := url.Parse(cluster.Server)
	if err != nil || u.Hostname() == "" {
		return info, "its cluster has no server"
	}
	info.Endpoint = u.Host
	if u.Port() == "" {
		info.Endpoint = net.JoinHostPort(u.Hostname(), "443")
	}
	rest := cluster.CertificateAuthorityData
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return info, "its certificate-authority-data has a certificate that cannot be read"
		}
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		info.CAHashes = append(info.CAHashes, "sha256:"+hex.EncodeToString(sum[:]))
	}
	slices.Sort(info.CAHashes)
	info.CAHashes = slices.Compact(info.CAHashes)
	if len(info.CAHashes) == 0 {
		return info, "its certificate-authority-data has no certificate"
	}
	return info, ""
}
