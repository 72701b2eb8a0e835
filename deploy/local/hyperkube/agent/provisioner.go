package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	provisionerName = "torchkeeper.local/folder"
	// The volume controller writes askedAnnotation on a claim to ask for a volume, and reads
	// madeByAnnotation on a volume to learn that its deletion is not its own business.
	askedAnnotation  = "volume.kubernetes.io/storage-provisioner"
	madeByAnnotation = "pv.kubernetes.io/provisioned-by"
	volumePrefix     = "pvc-"
)

// provisioner gives each claim that asks for it a folder of its own, and removes that folder when
// the claim is gone. Sizes are recorded, not enforced: a folder is no quota.
type provisioner struct {
	client  kubernetes.Interface
	claims  listers.PersistentVolumeClaimLister
	volumes listers.PersistentVolumeLister
	synced  []cache.InformerSynced
	queue   workqueue.TypedRateLimitingInterface[string] // of claims, namespace/name
	ends    workqueue.TypedRateLimitingInterface[string] // of volumes, name
	events  record.EventRecorder
	root    string
}

func newProvisioner(client kubernetes.Interface, shared informers.SharedInformerFactory, root string) *provisioner {
	claims := shared.Core().V1().PersistentVolumeClaims()
	volumes := shared.Core().V1().PersistentVolumes()
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	p := &provisioner{
		client:  client,
		claims:  claims.Lister(),
		volumes: volumes.Lister(),
		synced:  []cache.InformerSynced{claims.Informer().HasSynced, volumes.Informer().HasSynced},
		queue:   newQueue(),
		ends:    newQueue(),
		events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: provisionerName}),
		root:    root,
	}
	addHandler(claims.Informer(), p.queue)
	addHandler(volumes.Informer(), p.ends)
	return p
}

func (p *provisioner) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), p.synced...) {
		return
	}
	p.queueForgottenFolders()
	go runQueue(ctx, p.ends, p.syncVolume)
	runQueue(ctx, p.queue, p.syncClaim)
}

// A volume that was deleted while the agent was down left a folder that no event will name.
func (p *provisioner) queueForgottenFolders() {
	entries, err := os.ReadDir(p.root)
	if err != nil {
		klog.Errorf("%s: %v", p.root, err)
		return
	}
	for _, entry := range entries {
		p.ends.Add(entry.Name())
	}
}

func (p *provisioner) syncClaim(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	claim, err := p.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if claim.Annotations[askedAnnotation] != provisionerName || claim.Spec.VolumeName != "" ||
		claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimBound {
		return nil
	}
	if why := refuse(claim); why != "" {
		p.events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", why)
		return nil
	}
	if err := p.provision(ctx, claim); err != nil {
		p.events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", err.Error())
		return err
	}
	return nil
}

// refuse says why a folder cannot serve the claim, or "".
func refuse(claim *corev1.PersistentVolumeClaim) string {
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return "spec.volumeMode is Block: this cluster's volumes are folders, expected Filesystem"
	}
	if claim.Spec.Selector != nil {
		return "spec.selector is set: a volume is made for the claim and has no labels to select by"
	}
	return ""
}

func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name := volumePrefix + string(claim.UID)
	if _, err := p.volumes.Get(name); err == nil {
		return nil // made before; the volume controller has yet to bind it
	}
	folder := filepath.Join(p.root, name)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	// Whatever user a pod runs as must be able to write; the umask took that away just now.
	if err := os.Chmod(folder, 0o777); err != nil {
		return err
	}
	owner, err := reference.GetReference(scheme.Scheme, claim)
	if err != nil {
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, newVolume(name, folder, claim, owner), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		klog.Infof("claim %s/%s: made %s", claim.Namespace, claim.Name, folder)
	}
	return err
}

func newVolume(name, folder string, claim *corev1.PersistentVolumeClaim, owner *corev1.ObjectReference) *corev1.PersistentVolume {
	kind := corev1.HostPathDirectory
	class := ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{madeByAnnotation: provisionerName}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			ClaimRef:                      owner,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              class,
			VolumeMode:                    claim.Spec.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &kind},
			},
		},
	}
}

// syncVolume removes what a released or deleted volume leaves behind. The folder goes first: if
// that fails, the volume is still there to try again from.
func (p *provisioner) syncVolume(ctx context.Context, name string) error {
	volume, err := p.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return p.removeForgotten(ctx, name)
	}
	if err != nil {
		return err
	}
	if volume.Annotations[madeByAnnotation] != provisionerName || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.DeletionTimestamp != nil {
		return nil
	}
	if err := p.removeFolder(name); err != nil {
		return err
	}
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &volume.UID},
	})
	return ignoreNotFound(err)
}

// A folder without a volume may belong to a claim whose volume is being made, or to a volume that
// the cache has not seen yet, so the API server itself is asked.
func (p *provisioner) removeForgotten(ctx context.Context, name string) error {
	if _, err := os.Lstat(filepath.Join(p.root, name)); !strings.HasPrefix(name, volumePrefix) || os.IsNotExist(err) {
		return nil
	}
	_, err := p.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	claims, err := p.client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range claims.Items {
		if volumePrefix+string(claims.Items[i].UID) == name {
			return nil
		}
	}
	return p.removeFolder(name)
}

// removeFolder trusts no name: one that is not a plain entry of the root is refused.
func (p *provisioner) removeFolder(name string) error {
	if !strings.HasPrefix(name, volumePrefix) || name != filepath.Base(name) {
		return fmt.Errorf("volume %q: expected a name that begins with %s and has no slash", name, volumePrefix)
	}
	folder := filepath.Join(p.root, name)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	klog.Infof("removed %s", folder)
	return nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
