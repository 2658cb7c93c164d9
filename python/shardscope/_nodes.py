"""How many ranks this rank's node has, by the variables of its launcher."""
import os
import re

# (variable, variable with the number of all ranks that it was made for); torchrun and DeepSpeed set the first two.
PER_NODE = (("LOCAL_WORLD_SIZE", "WORLD_SIZE"), ("LOCAL_SIZE", "WORLD_SIZE"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
            ("MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"), ("MPI_LOCALNRANKS", "PMI_SIZE"))
SLURM = (("SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS"), ("SLURM_TASKS_PER_NODE", "SLURM_NTASKS"),
         ("SLURM_NTASKS_PER_NODE", "SLURM_NTASKS"))


def local_world(world, variables=None):
    """All of `world` if no variable says otherwise. A launcher's variables only count if it started as many ranks as there
    are: processes that a script starts itself (mp.spawn) inherit those of the one that started them."""
    variables = os.environ if variables is None else variables
    for name, of_all in PER_NODE:
        if number(variables, of_all) == world and number(variables, name):
            return min(number(variables, name), world)
    for name, of_all in SLURM:
        nodes = tasks_of_nodes(variables.get(name, ""))
        if number(variables, of_all) == world and nodes:
            node = number(variables, "SLURM_NODEID")
            return min(nodes[node] if node < len(nodes) else nodes[0], world)
    return world


def number(variables, name):
    value = variables.get(name, "")
    return int(value) if value.isdecimal() else 0


def tasks_of_nodes(text):
    """Slurm's "4(x2),3" as [4, 4, 3]; none if it is something else."""
    tasks = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if found is None or int(found[1]) == 0 or int(found[2] or 1) > 1 << 20:
            return []
        tasks += [int(found[1])] * int(found[2] or 1)
    return tasks
