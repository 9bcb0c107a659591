package cluster

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig file for a bearer token.
func (c *Cluster) WriteKubeconfig(path, token string) error {
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"e2e": {Server: c.URL(), CertificateAuthorityData: c.CA()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"token": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"e2e": {Cluster: "e2e", AuthInfo: "token"}},
		CurrentContext: "e2e",
	}, path)
	if err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}

// Token requests a service account's token, valid for a test run.
func (c *Cluster) Token(ctx context.Context, namespace, account string) (string, error) {
	seconds := int64(24 * 3600)
	t, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make token of service account %s/%s: %w", namespace, account, err)
	}
	return t.Status.Token, nil
}
