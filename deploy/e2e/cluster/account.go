package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Admit makes a service account with a cluster role, and its kubeconfig file.
func (c *Cluster) Admit(ctx context.Context, namespace, name, role, kubeconfig string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if _, err := c.client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service account %s: %w", name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}},
	}
	if _, err := c.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind role of %s: %w", name, err)
	}
	return c.Kubeconfig(ctx, namespace, name, kubeconfig)
}

// Kubeconfig writes a kubeconfig file with a service account's token.
func (c *Cluster) Kubeconfig(ctx context.Context, namespace, account, path string) error {
	token, err := c.Token(ctx, namespace, account)
	if err != nil {
		return err
	}
	return c.WriteKubeconfig(path, token)
}
