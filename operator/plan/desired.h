/* desired.h - build the objects that the operator creates: names, pods, Service, TensorBoard. Pure.
 *
 * Ownership: free returned cJSON trees with cJSON_Delete.
 */
#ifndef TK_OPERATOR_PLAN_DESIRED_H
#define TK_OPERATOR_PLAN_DESIRED_H

#include "operator/plan/planner.h"

/* Label of TensorBoard's pods; its value is the job's name. */
#define LABEL_TENSORBOARD "batch.tensorstack.dev/tensorboard"

enum { TENSORBOARD_PORT = 6006 };

/* <job>-<type>-<index>, <job>-rdzv, <job>-tensorboard. They never change, so that a second create gets AlreadyExists. */
char *desired_pod_name(struct arena *a, const char *job, const char *type, int index);
char *desired_service_name(struct arena *a, const char *job);
char *desired_tensorboard_name(struct arena *a, const char *job);

/* The user's template, unchanged except for the fields that the operator owns. */
cJSON *desired_pod(struct planner *p, const struct slot *s);

/* Add Warning events about a template that will probably not work as intended; once, when the job starts. */
void desired_pod_warnings(struct planner *p);

/* The headless Service through which the pods resolve each other's names. */
cJSON *desired_service(struct planner *p);

/* `hash` becomes the annotation ANNOTATION_SPEC_HASH of the Deployment. replicas -1: build the input of the
 * hash. */
cJSON *desired_tensorboard_deployment(struct planner *p, int replicas, const char *hash);
cJSON *desired_tensorboard_service(struct planner *p);

/* An affinity that prefers pod 0's node, where a ReadWriteOnce volume is; an empty object while pod 0 has no node. */
cJSON *desired_tensorboard_affinity(const struct planner *p);

/* ---- for the files of desired_*.c */

/* The member; if it is not an object, or not a list, an empty one replaces it. */
cJSON *desired_object(cJSON *parent, const char *key);
cJSON *desired_array(cJSON *parent, const char *key);

/* The apiVersion, kind and metadata of a child other than a pod. `hash`: for the annotation
 * ANNOTATION_SPEC_HASH; NULL: none. */
cJSON *desired_child(const struct planner *p, const char *version, const char *kind, const char *name,
                     const char *hash);

/* Add the list `ports` with this one port. `key`: the name of its number, "port" in a Service,
 * "containerPort" in a container. */
void desired_port(cJSON *parent, const char *key, const char *name, int number);

/* Set ownerReferences: {apiVersion, kind, name, uid, controller, blockOwnerDeletion} of the job. */
void desired_owner(const struct trainjob *job, cJSON *metadata);

/* Set the operator's fields in the training container: torchrun's command line, or environment variables
 * (RANK, ...). */
void desired_container(struct planner *p, const struct slot *s, cJSON *container);

/* Whether the pods of this plan run the launcher of torchrunConfig.launcher: Torchkeeper. Not in debug mode,
 * which runs no torchrun. */
bool desired_launcher_runs(const struct planner *p);

/* Add that launcher to a pod: an init container copies it into an emptyDir, which the training container
 * mounts. spec: the pod's. Call it after resumeSpecs, which may remove init containers. */
void desired_launcher_add(const struct planner *p, cJSON *spec, cJSON *container);

#endif
